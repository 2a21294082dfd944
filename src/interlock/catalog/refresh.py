"""One server's tools, listed and put into the registry.

Owns: the way from a live server to a replaced source.
Never: touches the registry before the listing is whole; a failed refresh leaves the old source (CAT-2).
"""

from interlock.catalog.entries import replacing
from interlock.catalog.registry import Prepared, Registry
from interlock.vocabulary.catalog import CatalogNote, ToolListing
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import ServerConfig
from interlock.vocabulary.slices import Sliced, at_once
from interlock.vocabulary.snapshot import ServerView

METHOD_NOT_FOUND = -32601


def source_of(server: str) -> str:
    """The name of a server's source in a Registry; no builtin source can have it."""
    return f"mcp:{server}"


async def list_source(view: ServerView, timeout: float) -> ToolListing:
    """Every page of the tools of `view`, unfiltered, within `timeout` seconds.

    A listing that the server has not outdated will do: Threads that share a connection share its listing too.

    A server that offers no tools gives an empty listing.

    Raises:
        ServerFailed: the listing could not be had whole (CAT-1).
    """
    try:
        listing = await view.connection.list_tools(timeout=timeout, held=True)
    except ServerFailed as error:
        if not _offers_no_tools(view, error):
            raise
        return ToolListing(server=view.config.name, tools=())
    return ToolListing(server=view.config.name, tools=listing.entries, bad=listing.bad)


def preparing(registry: Registry, listing: ToolListing, config: ServerConfig) -> Sliced[Prepared]:
    """What `registry.install` takes for `listing`, made in slices: nearly all the work that many tools are.

    Raises:
        ServerFailed: a bad tool, and the configuration does not skip it (CAT-3).
        InvalidRequest: a name came twice (CAT-5).
    """
    new = yield from replacing(listing, config)
    return (yield from registry.preparing(source_of(listing.server), new.entries, new.notes))


def apply(registry: Registry, listing: ToolListing, config: ServerConfig) -> tuple[CatalogNote, ...]:
    """Replace the source of `listing`'s server at once and return what people should know about its tools.

    Raises:
        ServerFailed, InvalidRequest: as `preparing` and `Registry.install`; the registry is as it was.
    """
    prepared = at_once(preparing(registry, listing, config))
    registry.install(prepared)
    return prepared.notes


def _offers_no_tools(view: ServerView, error: ServerFailed) -> bool:
    """Whether `error` says that there are no tools, not that a promised listing failed."""
    unknown = error.kind == "rejected" and error.rpc_code == METHOD_NOT_FOUND
    promised = "tools" in view.connection.report().capabilities
    return (unknown or error.kind == "unsupported") and not promised
