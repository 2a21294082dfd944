"""Whether a read may be made on the strength of a call.

Owns: the eight checks, their order, and the reason of each refusal (ORI-4).
Never: reads, or takes anything but today's catalogue and policy for its measure.
"""

from typing import Literal

from interlock.origins.definition import app_facts
from interlock.origins.store import Origin
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.snapshot import Snapshot

Reason = Literal[
    "unknown_call",
    "other_uri",
    "ambiguous_account",
    "tool_unavailable",
    "other_connector",
    "other_link",
    "link_required",
    "app_disabled",
]
"""Why a read is refused; in the facts of the NotPermitted as `reason`."""


def recall(origin: Origin | None, *, call_id: str, server: str, uri: str) -> Origin:
    """The first three checks, for which the past is enough; `origin` is what is remembered of the call.

    Raises:
        NotPermitted: as `authorise`.
    """
    if origin is None or origin.server != server:
        raise _refused(call_id, "unknown_call", f"no completed call of server {server!r} under this id grants one")
    if origin.uri != uri:
        raise _refused(call_id, "other_uri", "it was given another resource")
    if origin.ambiguous_account:
        raise _refused(call_id, "ambiguous_account", "it named another account than its tool")
    return origin


def authorise(origin: Origin | None, *, call_id: str, server: str, uri: str, today: Snapshot) -> Origin:
    """The origin that lets `uri` of `server` be read: all eight checks.

    Raises:
        NotPermitted: it may not be read; `facts["reason"]` is a Reason.
    """
    origin = recall(origin, call_id=call_id, server=server, uri=uri)
    _check_tool(origin, today)
    if not today.policy.app(origin.connector_id).enabled:
        raise _refused(
            call_id, "app_disabled", f"[apps.{origin.connector_id}] is switched off; set enabled = true to allow it"
        )
    return origin


def _check_tool(origin: Origin, today: Snapshot) -> None:
    """The tool as it is defined now must say of apps what it said when it was called."""
    entry, view = today.catalog.find(origin.server, origin.tool), today.servers.get(origin.server)
    if entry is None or view is None:
        raise _refused(origin.call_id, "tool_unavailable", f"its tool {origin.tool!r} is not there now")
    now = app_facts(entry.tool, view.config)
    if now.connector_id != origin.connector_id:
        raise _refused(origin.call_id, "other_connector", f"its tool {origin.tool!r} belongs to another connector now")
    if now.link_id != origin.link_id:
        raise _refused(origin.call_id, "other_link", f"its tool {origin.tool!r} is linked to another account now")
    if now.explicit_link and origin.link_id is None:
        raise _refused(origin.call_id, "link_required", f"its tool {origin.tool!r} wants an account, and has none")


def _refused(call_id: str, reason: Reason, because: str) -> NotPermitted:
    return NotPermitted(
        f"cannot read a resource for call {call_id[:200]!r}: {because}", reason=reason, call_id=call_id[:200]
    )
