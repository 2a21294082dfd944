"""The origins of a Thread: a fold of its events, bounded.

Owns: which completed calls are remembered, in which turns, and how they are forgotten (ORI-1, 2, 3, 6, 7).
Never: looks at a catalogue or a policy; `authorise` does, when a read asks.

Whatever is uncertain forgets more rather than less: a right that is gone can be had again by another call.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from interlock.origins.definition import text
from interlock.vocabulary.event import CallEnded, StoredEvent, ThreadCompacted, ThreadRolledBack, TurnStarted
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject, JsonValue

MAXIMUM_ORIGINS = MAXIMUM_TURNS = 64
BYTES_LIMIT = 1024
"""Of all strings of an origin but its server, together; and of one turn id."""

DEFAULT_SERVER: Final = "codex_apps"
"""The server of an origin that was stored without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A completed call whose tool belongs to a connector and shows a resource.

    `turn_id` None: nobody knows the turn. `ambiguous_account`: the call named another account than its tool.
    """

    server: str
    call_id: str
    turn_id: str | None
    tool: str
    connector_id: str
    link_id: str | None
    uri: str
    ambiguous_account: bool

    @property
    def fits(self) -> bool:
        """Whether it is small enough to be remembered (ORI-2), and names a connector."""
        strings = (self.call_id, self.turn_id, self.tool, self.connector_id, self.link_id, self.uri)
        return _bytes(strings) <= BYTES_LIMIT and bool(self.connector_id.strip())


class Origins:
    """The origins of one Thread. Follows the Journal: stored events first, then new ones as they are stored."""

    def __init__(self) -> None:
        self._origins: dict[str, Origin] = {}
        self._turns: list[str] = []
        self._current_turn: str | None = None

    def __repr__(self) -> str:
        return f"<Origins {len(self._origins)} of {len(self._turns)} turns>"

    def find(self, call_id: str) -> Origin | None:
        return self._origins.get(call_id)

    @property
    def all(self) -> tuple[Origin, ...]:
        """Oldest first."""
        return tuple(self._origins.values())

    def observe(self, stored: StoredEvent) -> None:
        match stored.event:
            case TurnStarted(turn_id=turn_id):
                self._start_turn(turn_id)
            case CallEnded(turn_id=turn_id, item=item) if item.status == "completed":
                self._remember(turn_id, item)
            case ThreadRolledBack(turns=count):
                self._roll_back(count)
            case ThreadCompacted(origins=checkpoint):
                self.restore(checkpoint)
            case _:
                pass

    def checkpoint(self) -> JsonObject:
        """Everything, as JSON: {"origins": [...], "turns": [...], "current_turn_id": ...?}; absent is absent."""
        origins = [_origin_json(origin) for origin in self._origins.values()]
        current = {} if self._current_turn is None else {"current_turn_id": self._current_turn}
        return {"origins": origins, "turns": list(self._turns), **current}

    def restore(self, checkpoint: JsonObject) -> None:
        """Be as the checkpoint says; empty when anything in it is not as it must be (ORI-7)."""
        self._origins, self._turns, self._current_turn = {}, [], None
        read = _read_checkpoint(checkpoint)
        if read is not None:
            origins, self._turns, self._current_turn = read
            self._origins = {origin.call_id: origin for origin in origins}

    def _start_turn(self, turn_id: str) -> None:
        self._current_turn = turn_id
        if _bytes((turn_id,)) > BYTES_LIMIT:
            return
        self._turns = [*(known for known in self._turns if known != turn_id), turn_id][-MAXIMUM_TURNS:]

    def _remember(self, turn_id: str, item: McpToolCallItem) -> None:
        """The call as an origin, if it makes one; in any case not as the call of that id that was before."""
        self._origins.pop(item.id, None)
        if item.connector_id is None or item.mcp_app_resource_uri is None:
            return
        origin = Origin(
            server=item.server,
            call_id=item.id,
            turn_id=turn_id,
            tool=item.tool,
            connector_id=item.connector_id,
            link_id=item.link_id,
            uri=item.mcp_app_resource_uri,
            ambiguous_account=_is_ambiguous(item),
        )
        if origin.fits:
            self._origins[origin.call_id] = origin
            while len(self._origins) > MAXIMUM_ORIGINS:
                del self._origins[next(iter(self._origins))]

    def _roll_back(self, count: int) -> None:
        """Drop turns from the back, with their origins and those of no turn; with no turn left, everything."""
        left = self._turns[: max(0, len(self._turns) - count)]
        dropped = {*self._turns[len(left) :], None}
        self._turns = left
        self._origins = {o.call_id: o for o in self._origins.values() if left and o.turn_id not in dropped}
        self._current_turn = None


def _is_ambiguous(item: McpToolCallItem) -> bool:
    """Whether the call's own argument names another account than its tool's link (ORI-3)."""
    named = text(item.arguments.get("link_id")) if isinstance(item.arguments, Mapping) else None
    return named is not None and named != item.link_id


def _bytes(strings: Iterable[str | None]) -> int:
    return sum(len(string.encode("utf-8", "surrogatepass")) for string in strings if string is not None)


def _origin_json(origin: Origin) -> JsonObject:
    written = {
        "server": origin.server,
        "call_id": origin.call_id,
        "turn_id": origin.turn_id,
        "tool": origin.tool,
        "connector_id": origin.connector_id,
        "link_id": origin.link_id,
        "uri": origin.uri,
        "ambiguous_account": origin.ambiguous_account,
    }
    return {name: value for name, value in written.items() if value is not None}


def _read_checkpoint(checkpoint: JsonObject) -> tuple[list[Origin], list[str], str | None] | None:
    """What a checkpoint says; None when it is over a bound, names a blank connector, or is none."""
    origins, turns, current = checkpoint.get("origins"), checkpoint.get("turns"), checkpoint.get("current_turn_id")
    if not isinstance(origins, list) or len(origins) > MAXIMUM_ORIGINS:
        return None
    if not isinstance(turns, list) or len(turns) > MAXIMUM_TURNS or not all(map(_is_turn_id, turns)):
        return None
    if not (current is None or _is_turn_id(current)):
        return None
    read = [origin for origin in map(_read_origin, origins) if origin is not None]
    return (read, turns, current) if len(read) == len(origins) else None


def _is_turn_id(value: JsonValue) -> bool:
    return isinstance(value, str) and _bytes((value,)) <= BYTES_LIMIT


def _read_origin(json: JsonValue) -> Origin | None:
    if not isinstance(json, Mapping) or not isinstance(json.get("ambiguous_account"), bool):
        return None
    names = ("call_id", "tool", "connector_id", "uri")
    required = [value for value in map(json.get, names) if isinstance(value, str)]
    optional = [json.get("server", DEFAULT_SERVER), json.get("turn_id"), json.get("link_id")]
    if len(required) != len(names) or not all(value is None or isinstance(value, str) for value in optional):
        return None
    call_id, tool, connector_id, uri = required
    server, turn_id, link_id = optional
    origin = Origin(
        server=DEFAULT_SERVER if server is None else server,
        call_id=call_id,
        turn_id=turn_id,
        tool=tool,
        connector_id=connector_id,
        link_id=link_id,
        uri=uri,
        ambiguous_account=json["ambiguous_account"],
    )
    return origin if origin.fits else None
