"""Approval: who is asked, who had the last word, and what is remembered."""

from itertools import product
from typing import Any

import pytest

from interlock.questions.approval import Remembered, ToolKey, decide, definition_of, wants_approval
from interlock.questions.rules import CallFacts
from interlock.vocabulary.policy import ApprovalMode, ApprovalRule, Decision, Policy
from interlock.vocabulary.tool import Tool, ToolAnnotations
from tests.manifest import requirement

HINTS = (None, False, True)
COMBINATIONS = list(product(HINTS, HINTS, HINTS))
ASKS, NEVER = Policy(), Policy(approval="never")
FULL = Policy(approval="never", full_access=True)
MODES: tuple[ApprovalMode, ...] = ("auto", "prompt", "writes", "approve")


def hints(read_only: bool | None, destructive: bool | None, open_world: bool | None) -> ToolAnnotations:
    return ToolAnnotations(read_only_hint=read_only, destructive_hint=destructive, open_world_hint=open_world)


def call(annotations: ToolAnnotations | None = None, **arguments: Any) -> CallFacts:
    return CallFacts(server="disk", tool="remove", annotations=annotations or ToolAnnotations(), arguments=arguments)


@requirement("APR-1")
@pytest.mark.parametrize(("read_only", "destructive", "open_world"), COMBINATIONS)
def test_auto_asks_unless_the_tool_only_reads_or_is_harmless(
    read_only: bool | None, destructive: bool | None, open_world: bool | None
) -> None:
    asks = wants_approval("auto", hints(read_only, destructive, open_world))

    only_reads = read_only is True and destructive is not True
    harmless = destructive is False and open_world is False
    assert asks is not (only_reads or harmless)


@requirement("APR-1")
@pytest.mark.parametrize(
    ("name", "annotations", "asks"),
    [
        ("none", hints(None, None, None), True),
        ("ro", hints(True, None, None), False),
        ("destr", hints(None, True, None), True),
        ("nondestr", hints(None, False, None), True),
        ("ro_open", hints(True, None, True), False),
        ("ro_destr", hints(True, True, None), True),
        ("nondestr_closed", hints(None, False, False), False),
        ("open", hints(None, None, True), True),
        ("closed", hints(None, None, False), True),
        ("nondestr_open", hints(None, False, True), True),
        ("destr_closed", hints(None, True, False), True),
    ],
)
def test_auto_asks_as_the_recorded_program_did(name: str, annotations: ToolAnnotations, asks: bool) -> None:
    assert wants_approval("auto", annotations) is asks


@requirement("APR-1")
@pytest.mark.parametrize(("read_only", "destructive", "open_world"), COMBINATIONS)
def test_the_other_modes_look_at_one_hint_or_none(
    read_only: bool | None, destructive: bool | None, open_world: bool | None
) -> None:
    annotations = hints(read_only, destructive, open_world)

    assert wants_approval("prompt", annotations)
    assert not wants_approval("approve", annotations)
    assert wants_approval("writes", annotations) is (read_only is not True)


@requirement("APR-1")
@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        (hints(True, None, None), "the tool says that it only reads"),
        (hints(True, True, None), "the tool says that it may destroy something"),
        (hints(None, True, False), "the tool says that it may destroy something"),
        (hints(None, False, None), "the tool may change something outside"),
        (hints(False, False, True), "the tool may change something outside"),
        (hints(None, False, False), "the tool says that it neither destroys anything nor reaches outside"),
        (hints(None, None, None), "the tool does not say what it may change"),
    ],
)
def test_people_read_why_they_are_asked_and_why_not(annotations: ToolAnnotations, reason: str) -> None:
    assert decide(call(annotations), "auto", ASKS, remembered=False).reason == reason


@requirement("APR-1", "QST-2")
@pytest.mark.parametrize(
    ("policy", "decision"), [(ASKS, "ask"), (NEVER, "deny"), (FULL, "allow"), (Policy(full_access=True), "ask")]
)
@pytest.mark.parametrize("mode", ["auto", "prompt", "writes"])
def test_never_refuses_what_would_have_to_ask_and_full_access_lets_it_pass(
    policy: Policy, decision: Decision, mode: ApprovalMode
) -> None:
    assert decide(call(), mode, policy, remembered=False).decision == decision
    assert decide(call(), "approve", policy, remembered=False).decision == "allow"


@requirement("APR-2")
def test_only_auto_remembers_and_only_auto_offers_to() -> None:
    for mode in MODES:
        asked = decide(call(), mode, ASKS, remembered=False)
        remembered = decide(call(), mode, ASKS, remembered=True)

        assert asked.persist == (("session", "always") if mode == "auto" else ())
        assert remembered.decision == ("allow" if mode in ("auto", "approve") else "ask")


@requirement("APR-4")
@pytest.mark.parametrize("action", ["allow", "deny", "ask"])
@pytest.mark.parametrize("mode", MODES)
def test_a_rule_that_matches_comes_before_memory_and_mode(action: Decision, mode: ApprovalMode) -> None:
    policy = Policy(approval_rules=(ApprovalRule(action=action, tool="rem*", reason="because", source="config.toml"),))

    verdict = decide(call(), mode, policy, remembered=True)

    assert (verdict.decision, verdict.basis, verdict.persist) == (action, "rule", ())
    assert verdict.reason == f"approval rule 1 (config.toml) says {action}: because"


@requirement("APR-4")
def test_the_first_rule_that_matches_decides_and_the_explanation_shows_those_before_it() -> None:
    policy = Policy(
        approval_rules=(
            ApprovalRule(action="deny", server="web"),
            ApprovalRule(action="allow", tool="remove"),
            ApprovalRule(action="deny"),
        )
    )

    verdict = decide(call(), "auto", policy, remembered=False)

    assert verdict.decision == "allow"
    assert [(one.number, one.mismatch) for one in verdict.examined] == [
        (1, "the server is 'disk', not like 'web'"),
        (2, None),
    ]


def test_a_rule_that_asks_gives_way_to_never_as_a_mode_does() -> None:
    rules = (ApprovalRule(action="ask"),)

    assert (
        decide(call(), "approve", Policy(approval="never", approval_rules=rules), remembered=False).decision == "deny"
    )
    full = Policy(approval="never", full_access=True, approval_rules=rules)
    assert decide(call(), "approve", full, remembered=False).decision == "allow"


def test_every_verdict_gives_its_reason() -> None:
    for mode, policy, remembered in product(MODES, (ASKS, NEVER, FULL), (False, True)):
        for read_only, destructive, open_world in COMBINATIONS:
            facts = call(hints(read_only, destructive, open_world))
            assert decide(facts, mode, policy, remembered=remembered).reason


def tool(**changes: Any) -> Tool:
    return Tool(**{"name": "look", "input_schema": {"type": "object"}, **changes})


@requirement("APR-2")
def test_an_approval_holds_for_one_tool_of_one_server_and_connector() -> None:
    remembered, definition = Remembered(), definition_of(tool())
    remembered.remember(ToolKey("disk", None, "look"), definition)

    assert remembered.holds(ToolKey("disk", None, "look"), definition)
    for other in (ToolKey("web", None, "look"), ToolKey("disk", "c1", "look"), ToolKey("disk", None, "see")):
        assert not remembered.holds(other, definition)


@requirement("APR-2")
@pytest.mark.parametrize(
    "changed",
    [
        tool(description="Deletes."),
        tool(annotations=ToolAnnotations(destructive_hint=True)),
        tool(input_schema={"type": "object", "properties": {"path": {}}}),
        tool(title="Look"),
    ],
)
def test_an_approval_does_not_cover_what_the_tool_becomes_later(changed: Tool) -> None:
    remembered, key = Remembered(), ToolKey("disk", None, "look")
    remembered.remember(key, definition_of(tool()))

    assert not remembered.holds(key, definition_of(changed))


def test_the_order_of_members_does_not_make_a_tool_another_one() -> None:
    one = tool(input_schema={"type": "object", "properties": {}})
    other = tool(input_schema={"properties": {}, "type": "object"})

    assert definition_of(one) == definition_of(other)
