"""Rules in a file: read as they are written, and strict where they cannot be read."""

from pathlib import Path

import pytest

from interlock.configuration import Configuration, load
from interlock.vocabulary.policy import ApprovalRule, Between, Like, OneOf, Present, Within
from tests.manifest import requirement


def read(folder: Path, text: str) -> Configuration:
    file = folder / "c.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, environment={})


@requirement("APR-4")
def test_rules_keep_the_order_and_the_place_of_the_file(tmp_path: Path) -> None:
    configuration = read(
        tmp_path,
        """
        [[approval_rules]]
        action = "deny"
        server = "git"
        tool = "push*"
        arguments = { branch = "main", force = true }
        reason = "main is protected"

        [[approval_rules]]
        action = "allow"
        annotations = { read_only = false, open_world = true }

        [approval_rules.arguments]
        path = { within = "/home/ada" }
        count = { minimum = 1, maximum = 9.5 }
        mode = { one_of = ["a", 1] }
        dry = { present = false }
        name = { like = "x?" }
        """,
    )

    first, second = configuration.policy.approval_rules
    assert configuration.problems == ()
    assert first == ApprovalRule(
        action="deny",
        server="git",
        tool="push*",
        arguments={"branch": Like(pattern="main"), "force": OneOf(values=(True,))},
        reason="main is protected",
        source=f"{tmp_path / 'c.toml'} [[approval_rules]] 1",
    )
    assert second.hints == {"read_only": False, "open_world": True}
    assert second.arguments == {
        "path": Within(folder="/home/ada"),
        "count": Between(minimum=1, maximum=9.5),
        "mode": OneOf(values=("a", 1)),
        "dry": Present(expected=False),
        "name": Like(pattern="x?"),
    }


def test_a_folder_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    configuration = read(tmp_path, '[[approval_rules]]\naction = "allow"\narguments = { p = { within = "~/src" } }')
    assert configuration.policy.approval_rules[0].arguments == {"p": Within(folder="/home/ada/src")}


BROKEN = [
    'tool = ["a"]',
    'argumnts = { path = "x" }',
    "annotations = { readonly = true }",
    'annotations = { read_only = "yes" }',
    'arguments = { path = { matches = "x" } }',
    'arguments = { path = { like = "x", present = true } }',
    'arguments = { path = { within = "src" } }',
    "arguments = { count = { minimum = true } }",
    "arguments = { x = { } }",
]


@requirement("APR-4")
@pytest.mark.parametrize("broken", BROKEN)
def test_a_rule_that_cannot_be_read_allows_nothing(tmp_path: Path, broken: str) -> None:
    configuration = read(tmp_path, f'[[approval_rules]]\naction = "allow"\n{broken}')

    assert configuration.policy.approval_rules == ()
    assert "it allows nothing" in configuration.problems[0].sentence


@requirement("APR-4")
@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("action", ["deny", "ask"])
def test_a_rule_that_limits_and_cannot_be_read_limits_more(tmp_path: Path, action: str, broken: str) -> None:
    configuration = read(tmp_path, f'[[approval_rules]]\naction = "{action}"\nserver = "git"\n{broken}')

    (rule,) = configuration.policy.approval_rules
    assert (rule.action, rule.server, rule.tool, rule.arguments, rule.hints) == (action, "git", "*", {}, {})
    assert len(configuration.problems) == 1


@pytest.mark.parametrize("action", ['action = "alow"', "action = 3", ""])
def test_a_rule_without_a_readable_action_denies(tmp_path: Path, action: str) -> None:
    configuration = read(tmp_path, f'[[approval_rules]]\n{action}\ntool = "rm"')

    (rule,) = configuration.policy.approval_rules
    assert (rule.action, rule.tool) == ("deny", "rm")


@pytest.mark.parametrize("text", ["approval_rules = 3", "approval_rules = [3]"])
def test_what_is_no_table_is_named(tmp_path: Path, text: str) -> None:
    configuration = read(tmp_path, text)
    assert configuration.policy.approval_rules == ()
    assert len(configuration.problems) == 1


def test_the_nearest_file_decides_and_a_project_may_not(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[[approval_rules]]\naction = "allow"\n[[approval_rules]]\naction = "ask"')
    (tmp_path / "c.toml").write_text('[[approval_rules]]\naction = "deny"')

    configuration = load(tmp_path / "c.toml", home=tmp_path, environment={})

    assert [rule.action for rule in configuration.policy.approval_rules] == ["deny"]


@pytest.mark.parametrize(("value", "stored", "problems"), [("true", True, 0), ("false", False, 0), ('"yes"', False, 1)])
def test_answers_are_stored_only_where_it_says_so(tmp_path: Path, value: str, stored: bool, problems: int) -> None:
    configuration = read(tmp_path, f"store_answers = {value}")
    assert configuration.policy.store_answers is stored
    assert len(configuration.problems) == problems
