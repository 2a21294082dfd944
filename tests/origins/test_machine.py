"""No sequence of operations lets a read through that the rules forbid: Origins against a plain list of what stands.

Events go through the codec and the fold's own rules, as they do in a Journal; a restart folds the stored ones
again, from the start or from a kept checkpoint.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from interlock.history.consistency import contradiction
from interlock.history.fold import Fold
from interlock.origins.authorise import authorise
from interlock.origins.store import BYTES_LIMIT, MAXIMUM_ORIGINS, MAXIMUM_TURNS, Origins
from interlock.stores import codec
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    Event,
    StoredEvent,
    ThreadCompacted,
    ThreadRolledBack,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
)
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import AppPolicy, Policy
from interlock.vocabulary.snapshot import Snapshot
from tests.manifest import requirement
from tests.threads.fakes import FakeConnection, config, snapshot, tool

SERVERS = ("codex_apps", "own_apps", "plain")
GRANTING = ("codex_apps", "own_apps")
TOOLS = ("show",)
CONNECTORS = ("calendar", "mail")
URIS = ("ui://week", "ui://month")
LINKS = (None, "work", "home")
LOOKED_AT = 12
"""How many of the latest calls are read after every step, those that were rolled back among them."""


@dataclass
class Definition:
    """What a server says of one tool now."""

    connector: str | None = "calendar"
    link: str | None = None
    explicit: bool = False
    uri: str | None = "ui://week"
    present: bool = True


@dataclass(frozen=True)
class Made:
    """A call as the reference remembers it."""

    call_id: str
    server: str
    tool: str
    connector: str | None
    link: str | None
    argument: Any
    uri: str | None
    completed: bool
    size: int


@dataclass
class StandingTurn:
    turn_id: str
    calls: list[Made] = field(default_factory=list)


class OriginMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.events: list[StoredEvent] = []
        self.folding = Fold("a")
        self.origins = Origins()
        self.kept: tuple[int, JsonObject] | None = None
        self.turns: list[StandingTurn] = []
        self.made: list[Made] = []
        self.running = False
        self.numbers = 0
        self.over_a_bound = False
        self.definitions = {(server, name): Definition() for server in SERVERS for name in TOOLS}
        self.disabled: set[str] = set()
        self.record(ThreadStarted())

    def record(self, *events: Event) -> None:
        assert contradiction(self.folding, events) is None
        for event in events:
            row = codec.encode(event)
            stored = codec.decode("a", len(self.events) + 1, 0, row)
            self.events.append(stored)
            self.folding.apply(stored)
            self.origins.observe(stored)

    def fresh(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}{self.numbers}"

    @precondition(lambda self: not self.running)
    @rule(count=st.sampled_from([1] * 9 + [MAXIMUM_TURNS]))
    def start_turns(self, count: int) -> None:
        for number in range(count):
            turn = StandingTurn(self.fresh("t"))
            self.record(TurnStarted(turn_id=turn.turn_id))
            self.turns.append(turn)
            if number < count - 1:
                self.record(TurnEnded(turn_id=turn.turn_id, status="completed"))
        self.running = True
        self.over_a_bound = self.over_a_bound or len(self.turns) > MAXIMUM_TURNS

    @precondition(lambda self: self.running)
    @rule(status=st.sampled_from(["completed", "failed", "interrupted"]))
    def end_turn(self, status: Any) -> None:
        self.record(TurnEnded(turn_id=self.turns[-1].turn_id, status=status))
        self.running = False

    @precondition(lambda self: self.running)
    @rule(
        server=st.sampled_from(SERVERS),
        name=st.sampled_from(TOOLS),
        completed=st.sampled_from([True, True, True, False]),
        argument=st.sampled_from([None, None, None, "", " ", "work", "home", 7]),
        length=st.sampled_from([0] * 9 + [BYTES_LIMIT]),
    )
    def call(self, server: str, name: str, completed: bool, argument: Any, length: int) -> None:
        now = self.definitions[server, name]
        call_id = self.fresh("c").ljust(length, "x")
        connector, link = (now.connector, now.link) if server in GRANTING else (None, None)
        item = McpToolCallItem(
            id=call_id,
            server=server,
            tool=name,
            public_name=name,
            arguments={"link_id": argument},
            status="completed" if completed else "failed",
            connector_id=connector,
            link_id=link,
            mcp_app_resource_uri=now.uri,
        )
        turn = self.turns[-1]
        self.record(
            CallStarted(turn_id=turn.turn_id, step_id="s", item=item),
            CallEnded(turn_id=turn.turn_id, step_id="s", item=item, effect="done"),
        )
        strings = (call_id, turn.turn_id, name, connector, link, now.uri)
        size = sum(len(string) for string in strings if string is not None)
        made = Made(call_id, server, name, connector, link, argument, now.uri, completed, size)
        turn.calls.append(made)
        self.made.append(made)
        self.over_a_bound = self.over_a_bound or sum(len(turn.calls) for turn in self.turns) > MAXIMUM_ORIGINS

    @precondition(lambda self: self.turns and not self.running)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, min(3, len(self.turns))))
        self.record(ThreadRolledBack(turns=count))
        del self.turns[len(self.turns) - count :]

    @rule()
    def compact(self) -> None:
        self.record(ThreadCompacted(summary="s", entries=(), origins=self.origins.checkpoint()))

    @rule(damage=st.sampled_from(["none"] * 8 + ["blank", "many"]))
    def compact_with_a_checkpoint_that_somebody_edited(self, damage: str) -> None:
        if damage == "none":
            return
        edited = json.loads(json.dumps(self.origins.checkpoint()))
        edited["origins"] = [*edited["origins"], {"connector_id": " "}] if damage == "blank" else [{}] * 65
        self.record(ThreadCompacted(summary="s", entries=(), origins=edited))
        assert self.origins.all == ()
        for turn in self.turns:
            turn.calls.clear()
        self.over_a_bound = True  # turns are forgotten too, so that a rollback forgets more than it must

    @rule()
    def keep_a_checkpoint(self) -> None:
        self.kept = (len(self.events), json.loads(json.dumps(self.origins.checkpoint())))

    @rule(from_checkpoint=st.booleans())
    def restart(self, from_checkpoint: bool) -> None:
        self.origins, covered = Origins(), 0
        if from_checkpoint and self.kept is not None:
            covered, checkpoint = self.kept
            self.origins.restore(checkpoint)
        for stored in self.events[covered:]:
            self.origins.observe(stored)

    @rule(
        place=st.tuples(st.sampled_from(SERVERS), st.sampled_from(TOOLS)),
        change=st.sampled_from(
            [
                *({"connector": connector} for connector in (*CONNECTORS, None)),
                *({"link": link} for link in LINKS),
                *({"uri": uri} for uri in (*URIS, None)),
                *({"explicit": True}, {"explicit": False}, {"present": False}, {"present": True}),
            ]
        ),
    )
    def change_the_catalogue(self, place: tuple[str, str], change: dict[str, Any]) -> None:
        self.definitions[place] = replace(self.definitions[place], **change)

    @rule(disabled=st.sets(st.sampled_from(CONNECTORS)))
    def change_the_policy(self, disabled: set[str]) -> None:
        self.disabled = disabled

    @invariant()
    def every_read_is_let_through_or_refused_as_the_rules_say(self) -> None:
        today = self.today()
        for made in self.made[-LOOKED_AT:]:
            self.read(made.call_id, made.server, made.uri or "ui://week", today)
            self.read(made.call_id, made.server, "ui://month", today)
            self.read(made.call_id, "own_apps", made.uri or "ui://week", today)
        self.read("never made", "codex_apps", "ui://week", today)

    def read(self, call_id: str, server: str, uri: str, today: Snapshot) -> None:
        try:
            authorise(self.origins.find(call_id), call_id=call_id, server=server, uri=uri, today=today)
        except NotPermitted:
            assert self.over_a_bound or not self.may_read(call_id, server, uri)
        else:
            assert self.may_read(call_id, server, uri)

    @invariant()
    def bounds_hold(self) -> None:
        checkpoint = self.origins.checkpoint()
        assert len(checkpoint["origins"]) <= MAXIMUM_ORIGINS
        assert len(checkpoint["turns"]) <= MAXIMUM_TURNS
        again = Origins()
        again.restore(checkpoint)
        assert again.checkpoint() == checkpoint

    def may_read(self, call_id: str, server: str, uri: str) -> bool:
        """The rules in the words of the requirements, over everything that stands."""
        made = next((call for turn in self.turns for call in turn.calls if call.call_id == call_id), None)
        if made is None or not made.completed or made.server != server or made.uri != uri:
            return False
        named = made.argument if isinstance(made.argument, str) and made.argument.strip() else None
        now = self.definitions[server, made.tool]
        return (
            made.connector is not None
            and made.size <= BYTES_LIMIT
            and (named is None or named == made.link)
            and now.present
            and server in GRANTING
            and now.connector == made.connector
            and now.link == made.link
            and not (now.explicit and made.link is None)
            and made.connector not in self.disabled
        )

    def today(self) -> Snapshot:
        servers = []
        for server in SERVERS:
            tools = [self.described(server, name) for name in TOOLS if self.definitions[server, name].present]
            servers.append((config(server, grants_origins=server in GRANTING), FakeConnection(server), tools))
        policy = Policy(apps={connector: AppPolicy(enabled=False) for connector in self.disabled})
        return snapshot(*servers, policy=policy)

    def described(self, server: str, name: str) -> Any:
        now = self.definitions[server, name]
        meta: dict[str, Any] = {"_codex_apps": {"requires_explicit_link_id": now.explicit}}
        meta |= {key: value for key, value in (("connector_id", now.connector), ("link_id", now.link)) if value}
        meta |= {"ui": {"resourceUri": now.uri}} if now.uri else {}
        return tool(name, meta=meta)


OriginMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


TestOrigins = requirement("ORI-1", "ORI-2", "ORI-3", "ORI-4", "ORI-6", "ORI-7")(OriginMachine.TestCase)
