"""Prompts, completions and templates from a shell."""

import json
from pathlib import Path

import pytest

from tests.manifest import requirement
from tests.surfaces.cli.shell import EXITS, Shell, scripted

SCRIPT = {
    "templates": [{"uriTemplate": "docs://{chapter}/{page}", "name": "page"}],
    "resources": [{"uri": "docs://one%20two/3", "name": "third", "text": "the third page"}],
    "prompts": [
        {
            "name": "review",
            "description": "Reviews code.",
            "arguments": [{"name": "language", "required": True}, {"name": "tone"}],
            "messages": [{"role": "user", "content": {"type": "text", "text": "review it\x1b[31m"}}],
        }
    ],
    "completions": {"review": {"language": ["python", "perl"]}, "docs://{chapter}/{page}": {"chapter": ["one", "two"]}},
}


@pytest.fixture
def docs(tmp_path: Path) -> Shell:
    """A folder with a server that has all of it, and one that has nothing."""
    shell = Shell(tmp_path)
    shell.configure(
        scripted("docs", shell.write("docs.json", json.dumps(SCRIPT))),
        scripted("plain", shell.write("plain.json", json.dumps({"tools": []}))),
    )
    return shell


@requirement("RES-11")
def test_prompts_are_listed_and_servers_without_any_are_marked(docs: Shell) -> None:
    done = docs.run("mcp", "prompts")
    assert "language, tone?" in done.output
    assert "without prompts: plain" in done.errors
    listed = docs.run("mcp", "prompts", "--json").json
    assert listed["offered"] == {"docs": True, "plain": False}
    assert [(prompt["server"], prompt["name"]) for prompt in listed["prompts"]] == [("docs", "review")]
    assert docs.run("mcp", "prompts", "plain", "--json").json["offered"] == {"plain": False}


@requirement("RES-11")
def test_a_prompt_is_filled_in_and_printed(docs: Shell) -> None:
    done = docs.run("mcp", "prompts", "docs", "review", "--set", "language=python")
    assert (done.status, done.output) == (0, "user: review it\x1b[31m\n")
    assert "\x1b[31m" not in docs.run_at_terminal("mcp", "prompts", "docs", "review")
    document = docs.run("mcp", "prompts", "docs", "review", "--json").json
    assert document["messages"][0]["content"]["text"] == "review it\x1b[31m"


@requirement("RES-11")
def test_arguments_of_prompts_and_variables_of_templates_are_completed(docs: Shell) -> None:
    assert docs.run("mcp", "complete", "docs", "language", "p", "--prompt", "review").output == "python\nperl\n"
    template = "docs://{chapter}/{page}"
    done = docs.run("mcp", "complete", "docs", "chapter", "t", "--template", template, "--json")
    assert done.json == {"values": ["two"], "total": 1, "hasMore": False}
    nothing = docs.run("mcp", "complete", "docs", "chapter", "x", "--template", template)
    assert (nothing.status, nothing.output) == (0, "")
    assert "proposes nothing that begins with 'x'" in nothing.errors


@requirement("RES-11")
def test_a_template_is_filled_in_and_read(docs: Shell) -> None:
    done = docs.run("mcp", "read", "docs", "docs://{chapter}/{page}", "--set", "chapter=one two", "-s", "page=3")
    assert (done.status, done.output) == (0, "the third page\n")
    assert "reading docs://one%20two/3" in done.errors
    assert "--set NAME=VALUE" in docs.run("mcp", "templates", "docs").errors


@requirement("RES-11")
@pytest.mark.parametrize(
    ("arguments", "status", "part"),
    [
        (["complete", "docs", "a"], 2, "give either --prompt NAME or --template TEMPLATE"),
        (["complete", "docs", "a", "--prompt", "x", "--template", "docs://{a}"], 2, "an argument of two things"),
        (["complete", "docs", "a", "--template", "docs://{b}"], 2, "has no variable 'a'; it has b"),
        (["complete", "docs", "a", "--template", "docs://{"], 2, "a brace has no partner"),
        (["complete", "plain", "a", "--prompt", "x"], 1, "does not offer completion/complete"),
        (["prompts", "plain", "x"], 1, "does not offer prompts/get"),
        (["prompts", "--set", "a=b"], 2, "name the SERVER and the PROMPT"),
        (["prompts", "docs", "review", "--set", "a"], 2, "write it as NAME=VALUE"),
        (["read", "docs", "docs://{a}", "--set", "b=c"], 2, "it has no variable 'b'; it has 'a'"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_sentence(
    docs: Shell, arguments: list[str], status: int, part: str
) -> None:
    done = docs.run("mcp", *arguments)
    assert (done.status, done.output) == (status, "")
    assert part in done.errors
    assert done.errors.count("\n") == 1


def test_when_every_server_fails_the_list_of_prompts_fails(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.configure(EXITS)
    assert shell.run("mcp", "prompts").status == 1
