"""Servers that a turn went without, for whoever reads its answer.

Owns: which servers those are, and one sentence for each.
Never: asks a server, takes one for absent that nobody wanted, or says again what a warning has said.
"""

from collections.abc import Container, Iterator

from interlock.surfaces.cli.output import warn
from interlock.threads.thread import Thread
from interlock.vocabulary.server import ServerReport, ServerStatus

GONE = frozenset({ServerStatus.FAILED, ServerStatus.AUTHENTICATION_REQUIRED})


def warn_of_absences(thread: Thread, told: Container[str]) -> None:
    """Name the servers whose tools the model could not have, as far as that shows at the end of a turn.

    `told`: sentences that people have read already.
    """
    for sentence in _sentences(thread):
        if sentence not in told:
            warn(sentence)


def _sentences(thread: Thread) -> Iterator[str]:
    failures = thread.listing_failures
    for report in thread.reports():
        if report.status in GONE:
            yield _gone(report)
        elif report.status is ServerStatus.STARTING and not report.restarts:
            yield (
                f"server {report.name!r} was still starting, and the turn went on without its tools; "
                f"required = true in [mcp_servers.{report.name}] waits for it"
            )
        elif report.name in failures:
            yield failures[report.name]


def _gone(report: ServerReport) -> str:
    reason = report.reason or "it is not connected"
    return reason if report.name in reason else f"server {report.name!r} is not available: {reason}"
