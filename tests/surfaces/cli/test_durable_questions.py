"""`interlock exec` is killed while a server of 2026-07-28 asks; the thread shows it, and another run answers it."""

import json
import os
import pty
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from interlock.configuration.platform import DATABASE
from interlock.stores import open_store
from interlock.testing import Call, Say, ScriptedEndpoint
from interlock.vocabulary.event import InputRequested, QuestionAnswered, QuestionAsked, ThreadStarted, TurnStarted
from interlock.vocabulary.form import Form
from interlock.vocabulary.question import Action, HeldRequest, Question
from tests.history.thread_events import call_started
from tests.manifest import requirement
from tests.surfaces.cli.shell import COMMAND, PATIENCE, Shell, pieces, scripted
from tests.surfaces.cli.test_exec import use
from tests.surfaces.cli.test_questions import CURSOR, PROMPT, SCRIPT, WHERE_IS_THE_CURSOR, converse, run

pytestmark = pytest.mark.anyio

ASKED = (Call("mcp__e__ask"), Say("so you are Ada"), Say("and on"))


@pytest.fixture
def asking(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    script = {**SCRIPT, "eras": ["stateless"]}
    shell.configure(scripted("e", shell.write("script.json", json.dumps(script))))
    return shell


def stopped_at_the_prompt(shell: Shell, number: signal.Signals) -> int:
    """The status of an `exec` at a terminal that got the signal while its prompt waited."""
    ours, theirs = pty.openpty()
    environment = shell.environment(TERM="xterm-256color", MODEL_KEY="k3y")
    process = subprocess.Popen(
        [*COMMAND, "exec", "go"], cwd=shell.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = ""
    for piece in pieces(ours, process):
        waits = PROMPT in seen
        seen += piece.decode(errors="replace")
        os.write(ours, CURSOR * piece.count(WHERE_IS_THE_CURSOR))
        if PROMPT in seen and not waits:
            process.send_signal(number)
    os.close(ours)
    return process.wait(PATIENCE)


async def the_thread(shell: Shell) -> str:
    (record,) = (await run(shell, "threads", "list", "--json")).json["threads"]
    thread_id: str = record["thread_id"]
    return thread_id


def told(lines: str) -> Any:
    (item,) = [e["item"] for e in map(json.loads, lines.splitlines()) if e["type"] == "call_ended"]
    return json.loads(item["result"]["content"][0]["text"])


@requirement("QST-9")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_exec_is_stopped_while_a_question_is_open_and_another_one_answers_it(
    number: signal.Signals, asking: Shell
) -> None:
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        status = await anyio.to_thread.run_sync(stopped_at_the_prompt, asking, number)
        assert status == (-9 if number is signal.SIGKILL else 143)
        thread = await the_thread(asking)

        shown = await run(asking, "threads", "show", thread)
        assert "still open: e asks: Who are you?" in shown.output
        resumed = await run(asking, "threads", "resume", thread)
        assert "still open: e asks: Who are you?" in resumed.output
        assert f"answer with: interlock exec --thread {thread}" in resumed.errors

        nobody = await run(asking, "exec", "--thread", thread, "and now?")
        assert (nobody.status, nobody.output) == (2, "")
        assert "answer at a terminal or with --answer FILE" in nobody.errors

        status, seen = await anyio.to_thread.run_sync(
            converse, asking, ["exec", "--thread", thread], [(PROMPT, "Ada\r"), (PROMPT, "send\r")]
        )
        assert (status, "so you are Ada" in seen) == (0, True)
        after = await run(asking, "threads", "resume", thread)
        assert "was not interrupted" in after.errors


@requirement("QST-9")
async def test_a_script_answers_from_a_file_and_goes_on_with_its_own_prompt(asking: Shell) -> None:
    answers = asking.write("answers.json", json.dumps([{"action": "accept", "content": {"name": "Ada"}}]))
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        await anyio.to_thread.run_sync(stopped_at_the_prompt, asking, signal.SIGKILL)
        done = await run(asking, "exec", "--last", "--json", "--answer", str(answers), "and now?")
    assert done.status == 0
    assert told(done.output)[0]["content"] == {"name": "Ada"}
    ends = [event for event in map(json.loads, done.output.splitlines()) if event["type"] == "turn_ended"]
    assert [(end["status"], end["last_message"]) for end in ends] == [
        ("completed", "so you are Ada"),
        ("completed", "and on"),
    ]


async def answered_by_a_host_that_was_killed(shell: Shell, thread_id: str, action: Action = "decline") -> None:
    """The question has an answer that did not get to its server any more."""
    async with open_store(shell.home / DATABASE) as store, store.claim(thread_id):
        events = [stored.event async for stored in store.read(thread_id)]
        (question,) = [event.question for event in events if isinstance(event, QuestionAsked)]
        answered = QuestionAnswered(question_id=question.id, server="e", action=action, by="user")
        await store.append(thread_id, [answered], after=len(events), at=0)


@requirement("QST-9")
async def test_to_look_at_a_turn_whose_answer_was_not_sent_does_not_end_it(asking: Shell) -> None:
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        await anyio.to_thread.run_sync(stopped_at_the_prompt, asking, signal.SIGKILL)
        thread = await the_thread(asking)
        await answered_by_a_host_that_was_killed(asking, thread)

        shown = await run(asking, "threads", "show", thread)
        assert "was answered, and has still to be told" in shown.errors
        assert "still open" not in shown.output
        looked = await run(asking, "threads", "resume", thread)
        assert "the last one was answered, and has still to be told" in looked.errors
        assert f"go on with: interlock exec --thread {thread}\n" in looked.errors
        compacted = await anyio.to_thread.run_sync(partial(asking.run, "threads", "compact", thread, MODEL_KEY="k3y"))
        assert (compacted.status, "its last turn waits for an answer" in compacted.errors) == (2, True)

        answers = asking.write("answers.json", "[]")
        done = await run(asking, "exec", "--thread", thread, "--json", "--answer", str(answers))
    assert done.status == 0
    assert told(done.output)[0] == {"action": "decline"}


OVER_AT_ONCE = """
from interlock.host.host import Host
from interlock.surfaces.cli.main import main

resume = Host.resume_thread

async def over_when_resumed(host, thread_id):
    thread = await resume(host, thread_id)
    if thread.running_turn is not None:
        await thread.running_turn.finished()
    return thread

Host.resume_thread = over_when_resumed
main()
"""
"""The command line, in which a turn that was taken up is over before anybody looks."""


@requirement("QST-9")
async def test_a_turn_that_ends_as_soon_as_it_is_taken_up_is_shown_with_its_end(asking: Shell) -> None:
    """A step of a program's own, killed with its answer not sent; the server is not configured any more."""
    question = Question(
        id="q", server="git", message="Who?", subject=Form(), turn_id="u", call_id="c", certainty="known"
    )
    held = HeldRequest(server="git", whereabouts="there", method="tools/call", params={"name": "log"}, keys=("a",))
    events = [
        ThreadStarted(),
        TurnStarted(turn_id="u", implicit=True),
        call_started("c", "u"),
        InputRequested(turn_id="u", call_id="c", request=held, questions=(question,)),
        QuestionAsked(question=question),
        QuestionAnswered(question_id="q", server="git", action="decline", by="user"),
    ]
    async with open_store(asking.home / DATABASE) as store:
        await store.append("thread", events, after=0, at=0)
    async with ScriptedEndpoint() as endpoint:
        use(asking, endpoint)
        command = [sys.executable, "-c", OVER_AT_ONCE, "exec", "--thread", "thread", "--json"]
        environment = asking.environment(MODEL_KEY="k3y")
        done = await anyio.run_process(
            command, cwd=asking.folder, env=environment, input=b"", stderr=subprocess.PIPE, check=False
        )
    (end,) = [event for event in map(json.loads, done.stdout.splitlines()) if event["type"] == "call_ended"]
    assert "is not configured any more" in end["item"]["error"]["message"]
    assert (done.returncode, b"the host ended while the turn ran" in done.stderr) == (1, True)


@requirement("QST-9")
async def test_a_rollback_ends_a_turn_whose_answer_was_not_sent(asking: Shell) -> None:
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        await anyio.to_thread.run_sync(stopped_at_the_prompt, asking, signal.SIGKILL)
        thread = await the_thread(asking)
        await answered_by_a_host_that_was_killed(asking, thread, "accept")  # its content is not stored
        shown = await run(asking, "threads", "show", thread)
        assert "still open: e asks: Who are you?" in shown.output
        assert "waits for an answer" in shown.errors
        assert "0 turns now" in (await run(asking, "threads", "rollback", thread)).errors
        assert len(endpoint.requests) == 1


@requirement("QST-9")
async def test_the_turn_can_be_given_up_instead(asking: Shell) -> None:
    async with ScriptedEndpoint(*ASKED) as endpoint:
        use(asking, endpoint)
        await anyio.to_thread.run_sync(stopped_at_the_prompt, asking, signal.SIGKILL)
        thread = await the_thread(asking)
        program = (await run(asking, "threads", "resume", thread, "--json")).json
        assert (program["interrupted_turn"], len(program["open_questions"])) == (None, 1)
        assert program["waiting_turn"] is not None
        given_up = (await run(asking, "threads", "resume", thread, "--interrupt", "--json")).json
        assert given_up["interrupted_turn"] == program["waiting_turn"]
        assert (given_up["open_questions"], given_up["waiting_turn"]) == ([], None)
        nothing = await anyio.to_thread.run_sync(partial(asking.run, "exec", "--thread", thread, MODEL_KEY="k3y"))
        assert nothing.status == 2
        assert "waits for no answer; give a prompt" in nothing.errors
