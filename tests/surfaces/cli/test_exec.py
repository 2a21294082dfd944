"""One turn from a shell, and what is stored of it."""

import json
import shlex
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

from interlock.testing import Call, Refuse, Say, ScriptedEndpoint
from tests.manifest import requirement
from tests.surfaces.cli.shell import BROKEN, OFF, Done, Shell, scripted

pytestmark = pytest.mark.anyio

ANSWER = "all is well"


async def run(shell: Shell, *arguments: str) -> Done:
    return await anyio.to_thread.run_sync(partial(shell.run, *arguments, MODEL_KEY="k3y"))


def use(shell: Shell, endpoint: ScriptedEndpoint) -> None:
    """Let the home folder's configuration name the endpoint."""
    servers = (shell.home / "config.toml").read_text(encoding="utf-8")
    shell.configure(
        'model = "scripted"\nmodel_provider = "local"\n',
        f'[model_providers.local]\nbase_url = "{endpoint.base_url}"\nenv_key = "MODEL_KEY"\n',
        servers,
    )


async def test_in_a_pipe_only_the_answer_is_printed(shell: Shell) -> None:
    async with ScriptedEndpoint(Call("mcp__good__echo", {"a": 1}), Say(ANSWER)) as endpoint:
        use(shell, endpoint)
        done = await run(shell, "exec", "how are you?")
    assert (done.status, done.output, done.errors) == (0, f"{ANSWER}\n", "")
    assert endpoint.requests[0].headers["authorization"] == "Bearer k3y"


@requirement("CON-1", "CAT-2")
async def test_servers_that_the_turn_went_without_are_named_beside_the_answer(shell: Shell) -> None:
    script = shell.write("bad.json", json.dumps({"tools": [{"name": "odd", "inputSchema": "none"}]}))
    sleeps = '[mcp_servers.slow]\ncommand = "sleep"\nargs = ["600"]\nstartup_timeout_sec = 600\n'
    shell.configure(scripted("bad", script, "required = true"), sleeps, BROKEN, OFF)
    async with ScriptedEndpoint(Say(ANSWER)) as endpoint:
        use(shell, endpoint)
        done = await run(shell, "exec", "how are you?")
    assert (done.status, done.output) == (0, f"{ANSWER}\n")
    broken, bad, slow = done.errors.splitlines()
    assert "[mcp_servers.broken]" in broken  # said of the configuration, and once
    assert bad.startswith("warning: cannot take the tools of server 'bad': tool 'odd' cannot be used")
    assert slow.startswith("warning: server 'slow' was still starting")
    assert slow.endswith("required = true in [mcp_servers.slow] waits for it")


async def test_as_json_every_stored_event_is_a_line(shell: Shell) -> None:
    async with ScriptedEndpoint(Call("mcp__good__echo", {"a": 1}), Say(ANSWER)) as endpoint:
        use(shell, endpoint)
        done = await run(shell, "exec", "how are you?", "--json")
        events = [json.loads(line) for line in done.output.splitlines()]
        thread = events[0]["thread_id"]
        shown = (await run(shell, "threads", "show", thread[:18], "--json")).json
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("thread_started", "turn_ended")
    assert events[-1]["last_message"] == ANSWER
    ended = next(event for event in events if event["type"] == "call_ended")
    assert (ended["item"]["server"], ended["item"]["tool"], ended["item"]["status"]) == ("good", "echo", "completed")
    assert shown["events"] == events
    assert shown["thread"]["thread_id"] == thread


async def test_a_stored_thread_shows_catalogue_calls_and_answer(shell: Shell) -> None:
    async with ScriptedEndpoint(Call("mcp__good__echo", {"a": 1}), Call("mcp__good__fail"), Say(ANSWER)) as endpoint:
        use(shell, endpoint)
        await run(shell, "exec", "how are you?", "--allow-tools")
        (thread,) = (await run(shell, "threads", "list", "--json")).json["threads"]
        shown = await run(shell, "threads", "show", thread["thread_id"])
        listed = await run(shell, "threads", "list")
    assert thread["preview"] == "how are you?"
    assert "how are you?" in listed.output
    lines = shown.output.splitlines()
    assert lines.count("  mcp__good__echo") == 1  # of three samplings
    assert any("good" in line and "echo" in line and " ms" in line and line.endswith("completed") for line in lines)
    assert any(line.endswith("failed: the tool answered with an error") for line in lines)
    assert lines[-1] == ANSWER


@requirement("LIF-8")
async def test_an_endpoint_that_names_all_calls_alike_is_served_like_any_other(shell: Shell) -> None:
    calls = [Call("mcp__good__echo", {"a": number}, call_id="0") for number in range(3)]
    async with ScriptedEndpoint(*calls, Say(ANSWER)) as endpoint:
        use(shell, endpoint)
        done = await run(shell, "exec", "how are you?", "--json")
    events = [json.loads(line) for line in done.output.splitlines()]
    ended = [event["item"] for event in events if event["type"] == "call_ended"]
    assert [(item["arguments"], item["status"]) for item in ended] == [({"a": n}, "completed") for n in range(3)]
    sent = [message for message in endpoint.requests[-1].body["input"] if message["type"] == "function_call_output"]
    assert len({message["call_id"] for message in sent}) == 3


async def test_at_a_terminal_the_answer_streams_and_calls_are_told(shell: Shell) -> None:
    async with ScriptedEndpoint(Call("mcp__good__echo", {"a": 1}), Say(ANSWER)) as endpoint:
        use(shell, endpoint)
        seen = await anyio.to_thread.run_sync(partial(shell.run_at_terminal, "exec", "hi", MODEL_KEY="k3y"))
    assert "calling echo of good" in seen
    assert seen.count(ANSWER) == 1


async def test_a_model_that_refuses_fails_the_command_in_one_sentence(shell: Shell) -> None:
    async with ScriptedEndpoint(Refuse(400, "no")) as endpoint:
        use(shell, endpoint)
        done = await run(shell, "exec", "hi", "--model", "other")
    assert (done.status, done.output) == (1, "")
    assert done.errors.startswith("error: ")
    assert done.errors.count("\n") == 1
    assert endpoint.requests[0].body["model"] == "other"


async def test_without_approval_a_writing_tool_is_refused_and_the_turn_goes_on(shell: Shell) -> None:
    async with ScriptedEndpoint(Call("mcp__good__fail"), Say(ANSWER)) as endpoint:
        use(shell, endpoint)
        done = await run(shell, "exec", "hi", "--json")
    ended = next(e for e in map(json.loads, done.output.splitlines()) if e["type"] == "call_ended")
    assert (done.status, ended["item"]["error"]["code"]) == (0, "not_permitted")


def test_the_demonstration_runs_from_the_command(shell: Shell) -> None:
    done = shell.run("demo")
    assert done.status == 0
    program, *words = shlex.split(done.output.rpartition("see it again: ")[2])
    assert (Path(program).name, words[:2]) == ("interlock", ["threads", "show"])


async def test_a_stored_thread_goes_on_with_another_turn(shell: Shell) -> None:
    async with ScriptedEndpoint(Say("first"), Say("second"), Say("third"), Say("fourth")) as endpoint:
        use(shell, endpoint)
        await run(shell, "exec", "one")
        (thread,) = (await run(shell, "threads", "list", "--json")).json["threads"]
        done = await run(shell, "exec", "two", "--last")
        assert (done.status, done.output) == (0, "second\n")
        lines = await run(shell, "exec", "three", "--thread", thread["thread_id"][:20], "--json")
        await run(shell, "exec", "four")
        threads = (await run(shell, "threads", "list", "--json")).json["threads"]
    events = [json.loads(line) for line in lines.output.splitlines()]
    assert events[0]["type"] == "turn_started"
    assert {event["thread_id"] for event in events} == {thread["thread_id"]}
    assert sorted(record["turns"] for record in threads) == [1, 3]
    assert "second" in json.dumps(endpoint.requests[2].body)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--last",), "there is no thread to go on with"),
        (("--thread", "nobody"), "there is no thread 'nobody'"),
        (("--thread", "x", "--last"), "cannot go on with two threads"),
    ],
)
async def test_a_thread_that_is_not_there_is_not_gone_on_with(
    shell: Shell, options: tuple[str, ...], told: str
) -> None:
    async with ScriptedEndpoint(Say("never")) as endpoint:
        use(shell, endpoint)
        done = await run(shell, "exec", "go on", *options)
    assert done.status == 2
    assert told in done.errors
    assert endpoint.requests == ()
