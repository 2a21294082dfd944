"""Questions of a turn, asked at a real terminal, answered from a file, or declined because nobody is there."""

import json
import os
import pty
import subprocess
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

from interlock.testing import Call, Say, ScriptedEndpoint
from tests.manifest import requirement
from tests.surfaces.cli.shell import COMMAND, PATIENCE, Done, Shell, pieces, scripted
from tests.surfaces.cli.test_exec import use

pytestmark = pytest.mark.anyio

NAME = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
SCRIPT = {
    "eras": ["handshake"],
    "tools": [
        {
            "name": "ask",
            "annotations": {"readOnlyHint": True},
            "do": [{"ask": {"message": "Who are you?", "requestedSchema": NAME}}],
        },
        {"name": "write", "do": [{"text": "written"}]},
    ],
}
ASKED = (Call("mcp__e__ask"), Call("mcp__e__write", {"path": "/x"}), Say("all is done"))


WHERE_IS_THE_CURSOR, CURSOR = b"\x1b[6n", b"\x1b[1;1R"
PROMPT = "\x1b[?2004h"
"""The terminal is read key by key from here on: a prompt turns on bracketed paste."""


@pytest.fixture
def asking(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.configure(scripted("e", shell.write("script.json", json.dumps(SCRIPT))))
    return shell


async def run(shell: Shell, *arguments: str) -> Done:
    return await anyio.to_thread.run_sync(partial(shell.run, *arguments, MODEL_KEY="k3y"))


def calls(done: Done) -> dict[str, dict[str, object]]:
    events = [json.loads(line) for line in done.output.splitlines()]
    return {event["item"]["tool"]: event["item"] for event in events if event["type"] == "call_ended"}


def converse(shell: Shell, arguments: list[str], script: list[tuple[str, str]]) -> tuple[int, str]:
    """Type each text once the terminal shows what stands before it; the status, and all that was shown."""
    ours, theirs = pty.openpty()
    environment = shell.environment(TERM="xterm-256color", MODEL_KEY="k3y")
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=shell.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen, looked_at = "", 0
    left = list(script)
    try:
        for piece in pieces(ours, process):
            seen += piece.decode(errors="replace")
            os.write(ours, CURSOR * piece.count(WHERE_IS_THE_CURSOR))
            while left and (place := seen.find(left[0][0], looked_at)) >= 0:
                words, text = left.pop(0)
                looked_at = place + len(words)
                os.write(ours, text.encode())
    finally:
        os.close(ours)
        process.wait(PATIENCE)
    assert left == [], seen
    return process.returncode, seen


@requirement("QST-4")
async def test_where_nobody_can_be_asked_questions_are_declined_and_the_turn_goes_on(asking: Shell) -> None:
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        done = await run(asking, "exec", "go", "--json")
    ended = calls(done)
    assert done.status == 0
    assert '"decline"' in json.dumps(ended["ask"]["result"]).replace("\\", "")
    assert "set approval_mode = 'approve'" in json.dumps(ended["write"]["error"])


async def test_a_file_answers_for_scripts(asking: Shell) -> None:
    file = asking.write(
        "answers.json",
        json.dumps(
            [
                {"kind": "elicitation-form", "action": "accept", "content": {"name": "Ada"}},
                {"kind": "approval", "tool": "write", "action": "accept"},
            ]
        ),
    )
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        done = await run(asking, "exec", "go", "--json", "--answer", str(file))
    ended = calls(done)
    assert "Ada" in json.dumps(ended["ask"]["result"])
    assert ended["write"]["status"] == "completed"


async def test_an_answer_of_the_file_that_does_not_fit_is_declined_with_a_warning(asking: Shell) -> None:
    file = asking.write("answers.json", json.dumps({"action": "accept", "content": {"nome": "Ada"}}))
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        done = await run(asking, "exec", "go", "--json", "--answer", str(file))
    assert "'name' is required" in done.errors
    assert '"decline"' in json.dumps(calls(done)["ask"]["result"]).replace("\\", "")


@requirement("QST-2")
@pytest.mark.parametrize(
    ("flags", "status"),
    [(["--approval", "never"], "failed"), (["--approval", "never", "--full-access"], "completed")],
)
async def test_flags_stand_above_the_configured_policy(asking: Shell, flags: list[str], status: str) -> None:
    file = asking.write("answers.json", json.dumps({"action": "accept"}))
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        done = await run(asking, "exec", "go", "--json", "--answer", str(file), *flags)
    ended = calls(done)
    assert ended["write"]["status"] == status
    assert '"decline"' in json.dumps(ended["ask"]["result"]).replace("\\", "")


async def test_a_file_of_answers_that_cannot_be_used_is_refused_before_anything_starts(asking: Shell) -> None:
    done = await run(asking, "exec", "go", "--answer", "none.json")
    assert (done.status, done.output) == (2, "")
    assert "cannot read the answers in none.json" in done.errors


@requirement("QST-6", "APR-2")
async def test_at_a_terminal_a_person_fills_in_the_form_and_approves_the_call(asking: Shell) -> None:
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        status, seen = await anyio.to_thread.run_sync(
            converse,
            asking,
            ["exec", "go"],
            [
                ("Who are you?", ""),
                (PROMPT, "\r"),
                ("Name is required", "Ada\r"),
                ("    Name: Ada", ""),
                (PROMPT, "send\r"),
                ("needs your approval", ""),
                (PROMPT, "yes\r"),
            ],
        )
        told = json.dumps([request.body for request in endpoint.requests], default=str)
    assert status == 0
    assert "Server e asks you" in seen
    assert "all is done" in seen
    assert "Ada" in told
    assert "written" in told


@requirement("QST-5")
async def test_ctrl_c_dismisses_the_question_and_not_the_command(asking: Shell) -> None:
    async with ScriptedEndpoint(Call("mcp__e__ask"), Say("all is done")) as endpoint:
        use(asking, endpoint)
        status, seen = await anyio.to_thread.run_sync(
            converse, asking, ["exec", "go"], [("Who are you?", ""), (PROMPT, "\x03")]
        )
        told = json.dumps([request.body for request in endpoint.requests], default=str)
    assert status == 0
    assert "cancel" in told
    assert "all is done" in seen
