"""Rules: what the user wrote about servers, tools, annotations and arguments."""

from typing import Any

import pytest

from interlock.questions.rules import CallFacts, deciding, examine
from interlock.vocabulary.policy import ApprovalRule, ArgumentTest, Between, Like, OneOf, Present, Within
from interlock.vocabulary.tool import ToolAnnotations
from tests.manifest import requirement


def call(**arguments: Any) -> CallFacts:
    return CallFacts(
        server="git",
        tool="push",
        annotations=ToolAnnotations(read_only_hint=False, open_world_hint=True),
        arguments=arguments,
    )


def matches(rule: ApprovalRule, facts: CallFacts) -> bool:
    return deciding(examine((rule,), facts)) is not None


@requirement("APR-4")
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (ApprovalRule(action="deny"), True),
        (ApprovalRule(action="deny", server="git"), True),
        (ApprovalRule(action="deny", server="GIT"), False),
        (ApprovalRule(action="deny", server="g*", tool="pu??"), True),
        (ApprovalRule(action="deny", server="github"), False),
        (ApprovalRule(action="deny", tool="push_all"), False),
        (ApprovalRule(action="deny", hints={"open_world": True}), True),
        (ApprovalRule(action="deny", hints={"open_world": True, "read_only": False}), True),
        (ApprovalRule(action="deny", hints={"open_world": False}), False),
        (ApprovalRule(action="deny", hints={"destructive": False}), False),
        (ApprovalRule(action="deny", hints={"idempotent": True}), False),
        (ApprovalRule(action="deny", server="git", arguments={"force": Present(expected=True)}), False),
    ],
)
def test_a_rule_matches_when_everything_it_names_does(rule: ApprovalRule, expected: bool) -> None:
    assert matches(rule, call()) is expected


@requirement("APR-4")
@pytest.mark.parametrize(
    ("test", "value", "expected"),
    [
        (Like(pattern="feature/*"), "feature/a/b", True),
        (Like(pattern="feature/*"), "main", False),
        (Like(pattern="*"), ["a"], False),
        (Like(pattern="*"), None, False),
        (OneOf(values=("a", 1)), "a", True),
        (OneOf(values=("a", 1)), 1, True),
        (OneOf(values=("a", 1)), 1.0, True),
        (OneOf(values=("a", 1)), True, False),
        (OneOf(values=(True,)), 1, False),
        (OneOf(values=(None,)), None, True),
        (OneOf(values=(["a"],)), ["a"], True),
        (Between(minimum=1), 1, True),
        (Between(minimum=1), 0.5, False),
        (Between(maximum=10), 11, False),
        (Between(minimum=0, maximum=1), True, False),
        (Between(minimum=0), "5", False),
        (Present(expected=True), None, True),
        (Present(expected=False), None, False),
        (Within(folder="/home/ada"), "/home/ada", True),
        (Within(folder="/home/ada/"), "/home/ada/x/y", True),
        (Within(folder="/"), "/etc/passwd", True),
        (Within(folder="/home/ada"), "/home/adam", False),
        (Within(folder="/home/ada"), "/home/ada/../eve", False),
        (Within(folder="/home/ada"), "/home/./ada/x/../y", True),
        (Within(folder="/home/ada"), "x", False),
        (Within(folder="/home/ada"), "~/x", False),
        (Within(folder="/home/ada"), "/home/ada/\0", False),
        (Within(folder="/home/ada"), 7, False),
    ],
)
def test_a_test_of_an_argument_says_what_it_means(test: ArgumentTest, value: Any, expected: bool) -> None:
    rule = ApprovalRule(action="allow", arguments={"x": test})

    assert matches(rule, call(x=value)) is expected


@pytest.mark.parametrize("test", [Like(pattern="*"), OneOf(values=(None,)), Between(), Within(folder="/")])
def test_a_missing_argument_passes_no_test_but_its_own(test: ArgumentTest) -> None:
    assert not matches(ApprovalRule(action="allow", arguments={"x": test}), call())
    assert matches(ApprovalRule(action="allow", arguments={"x": Present(expected=False)}), call())


def test_a_path_leads_into_objects_and_a_name_with_a_dot_is_found_whole() -> None:
    rule = ApprovalRule(action="deny", arguments={"options.force": OneOf(values=(True,))})

    assert matches(rule, call(options={"force": True}))
    assert matches(rule, CallFacts(server="git", tool="push", arguments={"options.force": True}))
    assert not matches(rule, call(options=[{"force": True}]))
    assert not matches(rule, call(options="force"))


@requirement("APR-4")
def test_a_rule_that_does_not_match_says_why() -> None:
    rule = ApprovalRule(action="deny", hints={"destructive": True}, arguments={"branch": Like(pattern="main")})

    (examined,) = examine((rule,), call())

    assert examined.mismatch == "destructive is not given, not true"
