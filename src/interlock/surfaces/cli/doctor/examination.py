"""All checks, one after the other, and what is printed of them.

Owns: the order of the checks, which servers are worth starting, the exit status.
Never: mends anything.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path

import anyio

from interlock.configuration import Configuration, refuse_windows
from interlock.configuration.load import Survey, survey
from interlock.surfaces.cli.doctor.command_check import examine
from interlock.surfaces.cli.doctor.configuration_check import (
    MODEL,
    SUBJECT,
    examine_files,
    examine_model,
    examine_places,
    not_examined,
)
from interlock.surfaces.cli.doctor.finding import Finding, Level
from interlock.surfaces.cli.doctor.home_check import SUBJECT as HOME
from interlock.surfaces.cli.doctor.home_check import examine_home
from interlock.surfaces.cli.doctor.server_check import examine_live
from interlock.surfaces.cli.doctor.value_check import examine_values
from interlock.surfaces.cli.opening import home, refuse_unknown, usable
from interlock.surfaces.cli.output import coloured, counted, one_line, print_json, print_line, print_text, say
from interlock.surfaces.cli.starting import starting
from interlock.vocabulary.server import StdioTransport
from interlock.vocabulary.snapshot import ServerView

GENERAL = (SUBJECT, MODEL, HOME)
COLOURS: Mapping[Level, str] = {"ok": "32", "note": "36", "warning": "33", "error": "31"}


async def show(server: str | None, config: Path | None, as_json: bool, closing: AsyncExitStack) -> int:
    """Examine and print; 1 when something would fail."""
    refuse_windows()
    surveyed = _survey(config)
    configuration, unreadable = surveyed.configuration, surveyed.unreadable
    if server is not None and not unreadable:
        refuse_unknown(configuration, server)
    findings = [*examine_files(configuration, unreadable, server)]
    if server is None:
        model = not_examined() if unreadable else examine_model(configuration, os.environ)
        findings += [*model, *examine_home(home(), configuration, unreadable)]
    findings += examine_places({n: found for n, found in surveyed.places.items() if server in (None, n)})
    findings += await _servers(closing, configuration, server)
    failing = any(finding.level == "error" for finding in findings)
    if as_json:
        print_json({"ok": not failing, "findings": [_document(finding) for finding in findings]})
    else:
        _print(findings)
    return 1 if failing else 0


def _survey(config: Path | None) -> Survey:
    surveyed = survey(config, home=home(), project=Path.cwd(), environment=os.environ)
    if config is not None and str(config) in surveyed.unreadable and not os.path.exists(config):
        raise surveyed.unreadable[str(config)]  # a wrong word of the command line, and no state of things
    return surveyed


async def _servers(closing: AsyncExitStack, configuration: Configuration, server: str | None) -> list[Finding]:
    names = [name for name in configuration.servers if server in (None, name)]
    findings = {name: _before_start(configuration, name) for name in names}
    startable = [n for n in usable(configuration) if n in findings and not _has_errors(findings[n])]
    async with starting(closing, configuration, startable) as views, anyio.create_task_group() as tasks:

        async def live(view: ServerView) -> None:
            findings[view.config.name] += await examine_live(view)

        for view in views.values():
            tasks.start_soon(live, view)
    return [finding for name in names for finding in findings[name]]


def _before_start(configuration: Configuration, name: str) -> list[Finding]:
    config = configuration.servers[name]
    if not config.enabled:
        fix = f"`interlock mcp enable {name}` enables it"
        message = f"is disabled in {config.source}, and was not tried"
        return [Finding(subject=name, level="note", kind="disabled", message=message, fix=fix)]
    if config.problem is not None:
        return []
    command = examine(config, config.transport) if isinstance(config.transport, StdioTransport) else ()
    return [*command, *examine_values(config)]


def _has_errors(findings: Sequence[Finding]) -> bool:
    return any(finding.level == "error" for finding in findings)


def _document(finding: Finding) -> dict[str, str | None]:
    return asdict(finding)


def _print(findings: Sequence[Finding]) -> None:
    general = [subject for subject in GENERAL if any(finding.subject == subject for finding in findings)]
    for subject in dict.fromkeys([*general, *sorted(finding.subject for finding in findings)]):
        print_text(one_line(subject))
        for finding in findings:
            if finding.subject == subject:
                print_line(f"  {_label(finding.level)} {one_line(finding.message)}")
                if finding.fix is not None:
                    print_text(f"           fix: {one_line(finding.fix)}")
    errors = sum(finding.level == "error" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    say(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}" if errors or warnings else "nothing is wrong")


def _label(level: Level) -> str:
    word = level.ljust(8)
    return f"\x1b[{COLOURS[level]}m{word}\x1b[0m" if coloured(sys.stdout) else word
