"""What a live server is like, and what its tools become.

Owns: the findings about one server that was started, or could not be.
Never: calls a tool, or fails because a server does.
"""

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from interlock.catalog.entries import replacement
from interlock.catalog.refresh import list_source
from interlock.connections.generation import DEFAULT_GRACE
from interlock.surfaces.cli.doctor.finding import Finding, Level
from interlock.surfaces.cli.opening import start_deadline
from interlock.surfaces.cli.output import counted, own_reason, with_way_out
from interlock.vocabulary.catalog import CatalogNote, ToolListing
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import ServerConfig, ServerReport, StdioTransport
from interlock.vocabulary.snapshot import ServerView

NOISE_FIX = "let it write logs to stderr: its stdout belongs to the protocol"
ODDITIES: dict[str, tuple[str, str | None]] = {
    "noise": ("printed {lines} on stdout that {are} no message, the last: {last}", NOISE_FIX),
    "invalid_json": ("sent {lines} that {are} no valid JSON, the last: {last}", NOISE_FIX),
    "invalid_utf8": ("sent {lines} that {are} not UTF-8, the last: {last}", "let it write UTF-8"),
    "line_too_long": (
        "sent {lines} beyond line_limit, the last began: {last}",
        "raise line_limit in its table",
    ),
}
NOTE_LEVELS: dict[str, Level] = {"bad_tool": "warning", "duplicate": "warning", "collision": "warning"}


async def examine_live(view: ServerView) -> list[Finding]:
    """Start it if need be, list its tools, and say what was seen."""
    try:
        listing = await list_source(view, start_deadline(view.config))
    except ServerFailed as error:
        return [*_failed(view, error), *_oddities(view.connection.report())]
    report = view.connection.report()
    return [
        *_ready(view.config, report, listing),
        *_oddities(report),
        *_tools(view.config, listing),
        *_filters(view.config, listing),
    ]


def _ready(config: ServerConfig, report: ServerReport, listing: ToolListing) -> Iterator[Finding]:
    server = config.name
    seconds = report.seconds_to_ready or 0.0
    who = f"{report.info.name} {report.info.version}".strip() if report.info else "a server that does not say its name"
    yield Finding(
        subject=server,
        level="ok",
        kind="ready",
        message=f"ready after {seconds:.2f} s: {who}, {report.transport}, "
        f"protocol {report.protocol_version} ({report.era} era)",
    )
    yield Finding(subject=server, level="ok", kind="capabilities", message=_capabilities(report, listing))
    if seconds > DEFAULT_GRACE and not config.required:
        yield Finding(
            subject=server,
            level="note",
            kind="slow_start",
            message=f"a first step waits {DEFAULT_GRACE:g} s for it and then begins without its tools",
            fix="set required = true if nothing shall begin without it",
        )


def _capabilities(report: ServerReport, listing: ToolListing) -> str:
    offers = report.offers
    if offers is None:
        return "it does not say what it offers"
    said = {"resources": offers.resources, "prompts": offers.prompts, "completions": offers.completions}
    has = [counted(len(listing.tools), "tool"), *(name for name, there in said.items() if there)]
    lacks = [name for name, there in said.items() if there is False]
    return f"offers {', '.join(has)}" + (f"; lacks {', '.join(lacks)}" if lacks else "")


def _failed(view: ServerView, error: ServerFailed) -> Iterator[Finding]:
    server, reason = view.config.name, own_reason(error)
    kind = {"authentication": "wants_credentials", "protocol": "breaks_protocol"}.get(error.kind, "cannot_start")
    by_hand = _by_hand(view.config)
    if by_hand is None or error.kind not in {"unavailable", "lost", "deadline"}:
        sentence = reason if ";" in reason else with_way_out(error)
        yield Finding.of_sentence(server, "error", kind, sentence, otherwise="tell its maintainers")
        return
    message, _, advice = reason.partition("; raise ")
    fix = f"see what it says when you start it yourself: {by_hand}"
    if advice:
        fix = f"raise {advice}; else {fix}"
    yield Finding(subject=server, level="error", kind=kind, message=message, fix=fix)


def _by_hand(config: ServerConfig) -> str | None:
    """The command line as it may be shown; None for a server at a URL."""
    if not isinstance(config.transport, StdioTransport):
        return None
    import shlex

    return shlex.join([str(config.transport.command), *(str(argument) for argument in config.transport.args)])


def _oddities(report: ServerReport) -> Iterator[Finding]:
    """What was counted. What has a remedy is a warning, everything else a note."""
    for diagnostic in report.diagnostics:
        last = repr(diagnostic.last[:100])
        level: Level = "warning" if diagnostic.kind in ODDITIES else "note"
        message, fix = ODDITIES.get(diagnostic.kind, ("{kind}, counted: {count}, the last: {last}", None))
        text = message.format(
            count=diagnostic.count,
            lines=counted(diagnostic.count, "line"),
            are="is" if diagnostic.count == 1 else "are",
            kind=diagnostic.kind.replace("_", " "),
            last=last,
        )
        yield Finding(subject=report.name, level=level, kind=diagnostic.kind, message=text, fix=fix)


def _tools(config: ServerConfig, listing: ToolListing) -> Iterator[Finding]:
    """Bad tools and renamed ones, and whether they keep the good ones out."""
    notes = replacement(listing, replace(config, on_bad_tool="skip")).notes
    try:
        replacement(listing, config)
    except ServerFailed as error:
        yield Finding.of_sentence(config.name, "error", "bad_tool", error.message, otherwise="tell its maintainers")
        notes = tuple(note for note in notes if note.kind != "bad_tool" or _is_another(note, error))
    filtered = [note.tool for note in notes if note.kind == "filtered"]
    if filtered:
        message = (
            f"enabled_tools or disabled_tools keep {counted(len(filtered), 'tool')} out: {', '.join(filtered[:10])}"
        )
        yield Finding(subject=config.name, level="note", kind="filtered", message=message)
    for note in notes:
        if note.kind != "filtered":
            yield _note(config.name, note)


def _is_another(note: CatalogNote, error: ServerFailed) -> bool:
    """Whether the refusal, which tells of one bad tool only, has not told of this one."""
    named = error.facts.get("bad_tools")
    return not (isinstance(named, list) and named[:1] == [note.tool])


def _note(server: str, note: CatalogNote) -> Finding:
    fix = "tell its maintainers" if note.kind in NOTE_LEVELS else None
    level: Level = NOTE_LEVELS.get(note.kind, "note")
    return Finding(subject=server, level=level, kind=note.kind, message=note.message, fix=fix)


def _filters(config: ServerConfig, listing: ToolListing) -> Iterator[Finding]:
    """Names in the table that no tool has: a filter that was mistyped does nothing, or keeps everything out."""
    names = {tool.name for tool in listing.tools} | {entry.name for entry in listing.bad}
    said = {
        "enabled_tools": config.enabled_tools or (),
        "disabled_tools": config.disabled_tools,
        "tools": tuple(config.tool_approval_modes),
    }
    for key, wanted in said.items():
        for name in wanted:
            if name not in names:
                close = get_close_matches(name, names, n=1)
                fix = f"did you mean {close[0]}?" if close else f"`interlock mcp tools {config.name}` lists them"
                yield Finding(
                    subject=config.name,
                    level="warning",
                    kind="unknown_tool",
                    message=f"`{key}` in {config.source} names {name}, which the server does not have",
                    fix=fix,
                )
