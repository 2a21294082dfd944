"""The list of stored threads.

Owns: its order, filters and cursors.
Never: reads more than is bounded here for one page.
"""

from collections.abc import AsyncIterator
from typing import Final, Literal

from typing_extensions import TypedDict

from interlock.host.host import Host
from interlock.surfaces.rpc import shapes
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.method import Context, Count, Method, Params, SortDirection
from interlock.surfaces.rpc.paging import slice_of
from interlock.vocabulary.event import ThreadRecord

READ_AT_ONCE: Final = 500
READ_AT_MOST: Final = 20_000
"""Threads that are looked at for one list; older ones (by their last change) are not found."""
INTERACTIVE: Final = frozenset({"cli", "vscode", "appServer"})
"""Kinds of sources under which our threads are found: Interlock does not tell them apart."""


class ListParams(Params):
    archived: bool | None = None
    cursor: str | None = None
    cwd: str | list[str] | None = None
    limit: Count | None = None
    model_providers: list[str] | None = None
    search_term: str | None = None
    sort_direction: SortDirection | None = None
    sort_key: Literal["created_at", "updated_at", "recency_at", "section_position"] | None = None
    source_kinds: list[str] | None = None


class ThreadsPage(TypedDict):
    data: list[shapes.Thread]
    nextCursor: str | None
    backwardsCursor: str | None


async def list_threads(context: Context, params: ListParams) -> ThreadsPage:
    application = context.application
    archived = params.archived is True
    found = [r async for r in records(application.host, archived) if _matches(r, params, application)]
    by_creation = params.sort_key in (None, "created_at")
    found.sort(
        key=lambda r: (r.created_at if by_creation else r.updated_at, r.thread_id),
        reverse=params.sort_direction != "asc",
    )
    page = slice_of(found, lambda record: record.thread_id, cursor=params.cursor, limit=params.limit)
    return {
        "data": [application.thread_shape(record) for record in page.entries],
        "nextCursor": page.next_cursor,
        "backwardsCursor": page.backwards,
    }


async def records(host: Host, archived: bool) -> AsyncIterator[ThreadRecord]:
    """The latest changed first, a bounded number."""
    before: int | None = None
    before_id: str | None = None
    for _ in range(READ_AT_MOST // READ_AT_ONCE):
        records = await host.threads(limit=READ_AT_ONCE, before=before, before_id=before_id, archived=archived)
        for record in records:
            yield record
        if len(records) < READ_AT_ONCE:
            return
        before, before_id = records[-1].updated_at, records[-1].thread_id


def _matches(record: ThreadRecord, params: ListParams, application: Application) -> bool:
    folders = [params.cwd] if isinstance(params.cwd, str) else params.cwd
    term = (params.search_term or "").casefold()
    return (
        not application.is_ephemeral(record.thread_id)
        and (not params.source_kinds or bool(INTERACTIVE & set(params.source_kinds)))
        and (not params.model_providers or application.provider in params.model_providers)
        and (folders is None or application.working_folder in folders)
        and (not term or term in (record.name or record.preview).casefold())
    )


METHODS: Final = (
    Method(
        name="thread/list",
        params=ListParams,
        result=ThreadsPage,
        run=list_threads,
        says="Stored threads page by page, newest first unless asked otherwise; archived ones only when asked for.",
    ),
)
