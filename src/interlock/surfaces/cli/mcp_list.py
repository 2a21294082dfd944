"""`interlock mcp list`: every configured server and what can be seen of it.

Owns: the columns and the JSON of a server's state.
Never: fails because a server does; that is what the list shows.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock.configuration import Configuration, Problem
from interlock.surfaces.cli.opening import EMPTY, read_configuration, start_deadline, usable
from interlock.surfaces.cli.output import Table, at_terminal, complain, own_reason, print_json, print_table
from interlock.surfaces.cli.running import run
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import ServerReport, ServerStatus, unstarted_report

if TYPE_CHECKING:
    from interlock.vocabulary.snapshot import ServerView  # which knows every port; an empty list needs none

HEADINGS = ("name", "status", "transport", "protocol", "tools", "ready", "restarts", "diagnostics", "reason")


def show(config: Path | None, as_json: bool) -> int:
    """Print at once where there is nothing to start; the exit status."""
    configuration = read_configuration(config)
    reports = {name: unstarted_report(server) for name, server in configuration.servers.items()}
    if names := usable(configuration):
        return run(partial(_show_started, configuration, names, reports, as_json))
    _print(configuration, reports, {}, as_json)
    return 0


async def _show_started(
    configuration: Configuration,
    names: Sequence[str],
    reports: dict[str, ServerReport],
    as_json: bool,
    closing: AsyncExitStack,
) -> None:
    import anyio  # here, as below: with the MCP SDK, which an empty list does not need

    from interlock.surfaces.cli.starting import starting

    tools: dict[str, int] = {}
    async with starting(closing, configuration, names) as views, anyio.create_task_group() as tasks:
        for view in views.values():
            tasks.start_soon(_count, view, tools, reports)
    _print(configuration, reports, tools, as_json)


def _print(
    configuration: Configuration, reports: Mapping[str, ServerReport], tools: Mapping[str, int], as_json: bool
) -> None:
    if as_json:
        print_json(_document(configuration, reports, tools))
    elif at_terminal(sys.stdout):
        _print_for_people(reports, tools)
    else:
        rows = [_row(report, tools.get(name)) for name, report in reports.items()]
        print_table(Table(HEADINGS, rows, EMPTY, names=("name",)))


def _print_for_people(reports: Mapping[str, ServerReport], tools: Mapping[str, int]) -> None:
    """Without the columns that say nothing; reasons stand below, since a column would break them into pieces."""
    rows = [_row(report, tools.get(name))[:-1] for name, report in reports.items()]
    kept = [place for place in range(len(HEADINGS) - 1) if {row[place] for row in rows} - {"-", "0"}]
    headings = tuple(HEADINGS[place] for place in kept)
    print_table(Table(headings, [tuple(row[place] for place in kept) for row in rows], EMPTY, names=("name",)))
    for name, report in reports.items():
        if report.reason:
            complain(report.reason if name in report.reason else f"{name}: {report.reason}")


async def _count(view: "ServerView", tools: dict[str, int], reports: dict[str, ServerReport]) -> None:
    """Wait for one server and count the tools that a step would have of it; its report is taken before it closes."""
    from interlock.catalog.entries import replacement
    from interlock.vocabulary.catalog import ToolListing

    config, connection = view.config, view.connection
    reason: str | None = None
    try:
        listing = await connection.list_tools(timeout=start_deadline(config))
        listed = ToolListing(server=config.name, tools=listing.entries, bad=listing.bad)
        tools[config.name] = len(replacement(listed, config).entries)
    except ServerFailed as error:
        reason = own_reason(error)
    reports[config.name] = _with_reason(connection.report(), reason)


def _with_reason(report: ServerReport, reason: str | None) -> ServerReport:
    """A start that has failed for us is over, though its process may still be being ended."""
    failed = reason is not None and report.status is ServerStatus.STARTING
    return replace(report, status=ServerStatus.FAILED if failed else report.status, reason=report.reason or reason)


def _document(
    configuration: Configuration, reports: Mapping[str, ServerReport], tools: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "servers": [_server(report, tools.get(name)) for name, report in reports.items()],
        "problems": [_problem(problem) for problem in configuration.problems],
        "files": list(configuration.files),
    }


def _server(report: ServerReport, tools: int | None) -> dict[str, Any]:
    return {
        "name": report.name,
        "status": report.status.value,
        "reason": report.reason,
        "required": report.required,
        "transport": report.transport,
        "protocol_version": report.protocol_version,
        "era": report.era,
        "server_info": {"name": report.info.name, "version": report.info.version} if report.info else None,
        "tools": tools,
        "seconds_to_ready": None if report.seconds_to_ready is None else round(report.seconds_to_ready, 3),
        "restarts": report.restarts,
        "diagnostics": [{"kind": d.kind, "count": d.count, "last": d.last} for d in report.diagnostics],
        "standard_error": report.standard_error,
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "file": problem.file,
        "table": problem.table,
        "key": problem.key,
        "message": problem.sentence,
        "fatal": problem.fatal,
    }


def _row(report: ServerReport, tools: int | None) -> tuple[str, ...]:
    status = "connected" if report.status is ServerStatus.READY else report.status.value.replace("_", " ")
    protocol = f"{report.protocol_version} {report.era}" if report.protocol_version else "-"
    return (
        report.name,
        status,
        report.transport,
        protocol,
        "-" if tools is None else str(tools),
        "-" if report.seconds_to_ready is None else f"{report.seconds_to_ready:.2f} s",
        str(report.restarts),
        ", ".join(f"{d.kind.replace('_', ' ')} {d.count}" for d in report.diagnostics) or "-",
        report.reason or "-",
    )
