"""Prompts from a pipe, answers in a form, and the other dialect of models."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from interlock.testing import Call, Say, ScriptedEndpoint
from tests.manifest import requirement
from tests.surfaces.cli.shell import COMMAND, PATIENCE, Done, Shell

pytestmark = pytest.mark.anyio

ANSWER = "all is well"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


async def run(shell: Shell, *arguments: str, **options: str) -> Done:
    return await anyio.to_thread.run_sync(partial(shell.run, *arguments, MODEL_KEY="k3y", **options))


def use(shell: Shell, endpoint: ScriptedEndpoint, wire_api: str = "responses", servers: bool = False) -> None:
    file = shell.home / "config.toml"
    tables = file.read_text(encoding="utf-8") if servers and file.exists() else ""
    shell.configure(
        'model = "scripted"\nmodel_provider = "local"\n',
        f'[model_providers.local]\nbase_url = "{endpoint.base_url}"\nenv_key = "MODEL_KEY"\nwire_api = "{wire_api}"\n',
        tables,
    )


def prompt_of(endpoint: ScriptedEndpoint) -> str:
    (entry,) = endpoint.requests[0].body["input"]
    (part,) = entry["content"]
    return str(part["text"])


@pytest.fixture
def here(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize("arguments", [["exec"], ["exec", "-"]])
async def test_a_prompt_is_read_from_a_pipe(here: Shell, arguments: list[str]) -> None:
    async with ScriptedEndpoint(Say(ANSWER)) as endpoint:
        use(here, endpoint)
        done = await run(here, *arguments, stdin="how are\nyou?\n")
    assert (done.status, done.output, done.errors) == (0, f"{ANSWER}\n", "")
    assert prompt_of(endpoint) == "how are\nyou?\n"


async def test_a_prompt_is_read_from_a_file_and_its_byte_order_mark_is_not(here: Shell) -> None:
    file = here.folder / "prompt.txt"
    file.write_bytes("\ufeffgrüß dich".encode())
    async with ScriptedEndpoint(Say(ANSWER)) as endpoint:
        use(here, endpoint)
        with file.open("rb") as stream:
            command = [*COMMAND, "exec"]
            environment = here.environment(MODEL_KEY="k3y")
            done = await anyio.run_process(command, stdin=stream, cwd=here.folder, env=environment)
    assert done.stdout == f"{ANSWER}\n".encode()
    assert prompt_of(endpoint) == "grüß dich"


async def test_a_prompt_of_ten_megabytes_arrives_whole(here: Shell) -> None:
    text = "0123456789abcde\n" * (640 * 1024)
    async with ScriptedEndpoint(Say(ANSWER)) as endpoint:
        use(here, endpoint)
        done = await run(here, "exec", stdin=text)
    assert (done.status, done.output) == (0, f"{ANSWER}\n")
    assert prompt_of(endpoint) == text


@pytest.mark.parametrize(
    ("stdin", "part"),
    [
        ("", "the prompt is blank; write what the model shall do"),
        (" \n", "the prompt is blank"),
        ("x" * (16 * 1024 * 1024 + 1), "cannot take the prompt from stdin: it is larger than 16 MiB"),
    ],
)
async def test_a_prompt_that_cannot_be_asked_is_one_sentence(here: Shell, stdin: str, part: str) -> None:
    done = await run(here, "exec", stdin=stdin)
    assert (done.status, done.output, done.errors.count("\n")) == (2, "", 1)
    assert part in done.errors


async def test_a_prompt_that_is_no_text_is_one_sentence(here: Shell) -> None:
    done = await anyio.run_process(
        [*COMMAND, "exec"], input=b"ab\xff", cwd=here.folder, env=here.environment(), check=False
    )
    assert (done.returncode, done.stderr.decode()) == (
        2,
        "error: cannot take the prompt from stdin: byte 2 is not UTF-8; convert it\n",
    )


def test_at_a_terminal_a_missing_prompt_is_not_waited_for(here: Shell) -> None:
    assert 'interlock exec "What changed?"' in here.run_at_terminal("exec")


def test_waiting_for_a_prompt_can_be_interrupted(here: Shell) -> None:
    process = subprocess.Popen(
        [*COMMAND, "exec", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=here.folder, env=here.environment()
    )
    assert process.stdin is not None
    process.stdin.write(b"x" * 2_000_000)  # more than a pipe holds: all of it is taken, and more is waited for
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert process.communicate()[1] == b""


# ---- the form of the answer


async def test_an_answer_in_the_form_that_was_asked_for_is_printed(here: Shell) -> None:
    here.write("schema.json", "\ufeff" + json.dumps(SCHEMA))
    async with ScriptedEndpoint(Say('{"n": 1}')) as endpoint:
        use(here, endpoint)
        done = await run(here, "exec", "count", "--output-schema", "schema.json")
    assert (done.status, done.output, done.errors) == (0, '{"n": 1}\n', "")
    assert endpoint.requests[0].body["text"]["format"]["schema"] == SCHEMA


@pytest.mark.parametrize(
    ("answer", "why"), [("one", "it is no JSON"), ('{"n": "one"}', '"one" is not of type "integer"')]
)
async def test_an_answer_of_another_form_is_printed_and_fails(here: Shell, answer: str, why: str) -> None:
    here.write("schema.json", json.dumps(SCHEMA))
    async with ScriptedEndpoint(Say(answer)) as endpoint:
        use(here, endpoint)
        done = await run(here, "exec", "count", "--output-schema", "schema.json")
    assert (done.status, done.output) == (1, f"{answer}\n")
    assert done.errors == f"error: the model's answer does not have the form of schema.json: {why}\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "at line 1, column 2"),
        ("[]", "it must be a JSON object"),
        ('{"type": "objekt"}', 'it is no JSON Schema: "objekt" is not valid'),
        ('{"$ref": "#/none"}', "it is no JSON Schema: "),
        ('{"$ref": "https://example.org/x.json"}', "which is not fetched"),
        ('{"type": "string", "pattern": "("}', "it is no JSON Schema: "),
    ],
)
async def test_a_schema_that_is_none_is_refused_before_anything_is_started(here: Shell, text: str, part: str) -> None:
    here.write("schema.json", text)
    done = await run(here, "exec", "count", "--output-schema", "schema.json")
    assert (done.status, done.output, done.errors.count("\n")) == (2, "", 1)
    assert part in done.errors
    assert not (here.home / "interlock.db").exists()


async def test_an_absent_schema_is_named(here: Shell) -> None:
    done = await run(here, "exec", "count", "--output-schema", "absent.json")
    assert (done.status, done.errors.count("\n")) == (2, 1)
    assert "cannot read the output schema absent.json: no such file or directory; check the path" in done.errors


# ---- Chat Completions


async def test_chat_completions_run_a_turn_with_calls_as_responses_do(shell: Shell) -> None:
    samplings: list[Any] = [
        [Call("mcp__good__echo", {"a": 1}), Call("mcp__good__fail", {})],
        Say('{"n": 2}'),
    ]
    shell.write("schema.json", json.dumps(SCHEMA))
    async with ScriptedEndpoint(*samplings) as endpoint:
        use(shell, endpoint, "chat", servers=True)
        done = await run(shell, "exec", "count", "--allow-tools", "--output-schema", "schema.json")
    assert (done.status, done.output, done.errors) == (0, '{"n": 2}\n', "")
    first, second = endpoint.requests
    assert (first.path, second.path) == ("/v1/chat/completions", "/v1/chat/completions")
    assert {tool["function"]["name"] for tool in first.body["tools"]} >= {"mcp__good__echo", "list_mcp_resources"}
    assert first.body["response_format"]["json_schema"]["schema"] == SCHEMA
    roles = [message["role"] for message in second.body["messages"]]
    assert roles[-3:] == ["assistant", "tool", "tool"]
    assert second.body["messages"][-1]["content"] == "no such luck"


async def test_chat_completions_stream_at_a_terminal(here: Shell) -> None:
    async with ScriptedEndpoint(Say(ANSWER)) as endpoint:
        use(here, endpoint, "chat")
        seen = await anyio.to_thread.run_sync(partial(here.run_at_terminal, "exec", "hi", MODEL_KEY="k3y"))
    assert seen.count(ANSWER) == 1


# ---- Ctrl-C


@requirement("LIF-1", "CON-5")
async def test_an_interrupted_turn_stores_the_end_of_every_call(here: Shell) -> None:
    called = here.folder / "called"
    script = {
        "tools": [
            {
                "name": "hang",
                "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
                "do": [{"touch": str(called)}, {"silence": True}],
            }
        ]
    }
    from tests.surfaces.cli.shell import scripted

    here.configure(scripted("slow", here.write("slow.json", json.dumps(script)), "required = true"))
    async with ScriptedEndpoint(Call("mcp__slow__hang", {})) as endpoint:
        use(here, endpoint, servers=True)
        process = await anyio.to_thread.run_sync(partial(_started, here))
        with anyio.fail_after(PATIENCE):
            while not called.exists():  # noqa: ASYNC110 -- another process makes it
                await anyio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(PATIENCE):
            status = await anyio.to_thread.run_sync(process.wait)
    assert status == 130
    (thread,) = (await run(here, "threads", "list", "--json")).json["threads"]
    events = (await run(here, "threads", "show", thread["thread_id"], "--json")).json["events"]
    kinds = [event["type"] for event in events]
    assert kinds.count("call_started") == kinds.count("call_ended") == 1
    assert kinds[-1] == "turn_ended"
    assert events[-1]["status"] == "interrupted"


def _started(shell: Shell) -> "subprocess.Popen[bytes]":
    """As `interlock exec hang`, but on a busy machine too it has the time to close in order."""
    code = (
        "import sys\nfrom interlock.surfaces.cli import main, running\n"
        f"running.CLOSING_PATIENCE = {PATIENCE}\nsys.argv = ['interlock', 'exec', 'hang']\nmain.main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=shell.folder,
        env=shell.environment(MODEL_KEY="k3y"),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_only_the_answer_is_flushed_into_a_pipe_that_nobody_reads(here: Shell) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, "exec", "--help"], stdout=writer, stderr=subprocess.PIPE, env=here.environment())
    os.close(writer)
    assert b"Traceback" not in done.stderr
