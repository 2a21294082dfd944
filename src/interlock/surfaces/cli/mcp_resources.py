"""`interlock mcp resources` and `templates`: what servers list.

Owns: both kinds of list, in the shapes that the model's resource tools have (BEHAVIOUR section 5).
Never: follows pages of a named server (its cursor is passed through), or takes a cursor without a server.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.surfaces.cli.asking import Answers, Ask, ask_all, ask_one
from interlock.surfaces.cli.opening import call_deadline, read_configuration
from interlock.surfaces.cli.output import Table, complain, print_json, print_table, say
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.ports import Connection
from interlock.vocabulary.resource import Listing, Page, Resource, ResourceTemplate
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import BadEntry

Entry = Resource | ResourceTemplate
OnePage = Callable[[Connection, str | None, float], Awaitable[Page[Entry]]]
AllPages = Callable[[Connection, float], Awaitable[Listing[Entry]]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of list: its key in JSON, its noun, what its entries are known by, and how a server is asked for it."""

    key: str
    noun: str
    uri: str
    heading: str
    one_page: OnePage
    all_pages: AllPages


async def _resources(connection: Connection, cursor: str | None, timeout: float) -> Page[Entry]:
    return await connection.list_resources(cursor=cursor, timeout=timeout)


async def _all_resources(connection: Connection, timeout: float) -> Listing[Entry]:
    return await connection.list_all_resources(timeout=timeout)


async def _templates(connection: Connection, cursor: str | None, timeout: float) -> Page[Entry]:
    return await connection.list_resource_templates(cursor=cursor, timeout=timeout)


async def _all_templates(connection: Connection, timeout: float) -> Listing[Entry]:
    return await connection.list_all_resource_templates(timeout=timeout)


RESOURCES = Kind("resources", "resource", "uri", "uri", _resources, _all_resources)
TEMPLATES = Kind("resourceTemplates", "resource template", "uriTemplate", "uri template", _templates, _all_templates)


async def show(
    kind: Kind, config: Path | None, server: str | None, cursor: str | None, as_json: bool, closing: AsyncExitStack
) -> int:
    """Print the list; 1 when somebody was asked and everybody failed."""
    if cursor is not None and server is None:
        raise InvalidRequest("cannot use --cursor without a server, whose cursor it is; name the SERVER as well")
    configuration = read_configuration(config, server)
    if server is not None:
        page = await ask_one(closing, configuration, server, _one_page(kind, cursor))
        _show_page(kind, server, page, as_json)
        return 0
    return _show_all(kind, await ask_all(closing, configuration, _all_pages(kind)), as_json)


def _show_page(kind: Kind, server: str, page: Page[Entry], as_json: bool) -> None:
    entries = [_labelled(server, entry) for entry in page.entries]
    if as_json:
        document: dict[str, Any] = {"server": server, kind.key: entries}
        if page.next_cursor is not None:
            document["nextCursor"] = page.next_cursor
        print_json(document | _errors([(server, bad) for bad in page.bad]))
        return
    _print(kind, entries, [(server, bad) for bad in page.bad])
    if page.next_cursor is not None:
        say(f"there is more: repeat with --cursor {page.next_cursor}")


def _show_all(kind: Kind, answers: Answers[Listing[Entry]], as_json: bool) -> int:
    entries = [_labelled(name, entry) for name, listing in answers.given.items() for entry in listing.entries]
    bad = [(name, entry) for name, listing in answers.given.items() for entry in listing.bad]
    if as_json:
        errors = answers.errors + _errors(bad).get("errors", [])
        print_json({kind.key: entries} | ({"errors": errors} if errors else {}))
    else:
        _print(kind, entries, bad)
        answers.complain()
    return answers.status


def _one_page(kind: Kind, cursor: str | None) -> Ask[Page[Entry]]:
    async def ask(view: ServerView) -> Page[Entry]:
        return await kind.one_page(view.connection, cursor, call_deadline(view.config))

    return ask


def _all_pages(kind: Kind) -> Ask[Listing[Entry] | None]:
    async def ask(view: ServerView) -> Listing[Entry] | None:
        try:
            return await kind.all_pages(view.connection, call_deadline(view.config))
        except ServerFailed as error:
            if error.kind == "unsupported":  # a server without resources is no failure of the whole (RES-6)
                return None
            raise

    return ask


def _labelled(server: str, entry: Entry) -> dict[str, Any]:
    return {"server": server, **{key: value for key, value in entry.raw.items() if value is not None}}


def _errors(bad: list[tuple[str, BadEntry]]) -> dict[str, Any]:
    errors = [{"server": server, "message": _left_out(entry)} for server, entry in bad]
    return {"errors": errors} if errors else {}


def _left_out(entry: BadEntry) -> str:
    return f"the entry {entry.name} is left out: {entry.reason}"


def _print(kind: Kind, entries: list[dict[str, Any]], bad: list[tuple[str, BadEntry]]) -> None:
    rows = [
        (entry["server"], str(entry.get(kind.uri, "-")), str(entry.get("name", "-")), str(entry.get("mimeType") or "-"))
        for entry in entries
    ]
    headings = ("server", kind.heading, "name", "type")
    print_table(Table(headings, rows, f"no server lists a {kind.noun}", names=headings[:2]))
    if kind is TEMPLATES and rows:
        say("`interlock mcp read SERVER TEMPLATE --set NAME=VALUE` fills one in and reads it")
    for server, entry in bad:
        complain(f"{server}: {_left_out(entry)}")
