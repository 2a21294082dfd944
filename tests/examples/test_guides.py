"""The guides: their examples run, their reference is current, what they name is there."""

import ast
import json
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import keyring
import pytest
from aiohttp import web

from docs.reference.configuration import PAGE, page, undescribed
from interlock.configuration import load
from interlock.testing import Call, Say, ScriptedEndpoint
from tests.manifest import requirement
from tests.surroundings import surroundings

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parent.parent.parent / "docs"
EXAMPLES = DOCS / "examples"
GUIDES = ("first-steps.md", "configuration.md", "bring-your-own-loop.md", "troubleshooting.md")
PATIENCE = 60.0
TIME = Call("mcp__time__get_current_time", {"timezone": "Europe/Rome"})
SERVERS = f"""
[mcp_servers.time]
command = {json.dumps(sys.executable)}
args = ["-m", "mcp_server_time"]
env_vars = ["PYTHONPATH"]
required = true
startup_timeout_sec = 50
"""

PYTHON = shlex.quote(sys.executable)
LIBRARY = ("mcp_server_time", "interlock.demo.library_server")


def reader(folder: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who has installed Interlock and has a `python` and a `git`."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, script in {
        "python": f'exec {PYTHON} "$@"',
        "interlock": f'exec {PYTHON} -m interlock "$@"',
        "git": "echo 1f2e3d4 Mend the clock",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    home = {"HOME": str(folder), "INTERLOCK_HOME": str(folder / "home")}
    return surroundings(**home, PATH=path, OPENAI_API_KEY="k", **more)


async def run(folder: Path, *command: str, **environment: str) -> str:
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process(command, env=reader(folder, **environment), cwd=folder, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def configure(folder: Path, endpoint: ScriptedEndpoint | None = None, servers: str = SERVERS) -> Path:
    """The home folder's configuration, which `interlock.toml` holds too."""
    model = ""
    if endpoint is not None:
        model = f'model = "m"\nmodel_provider = "local"\n[model_providers.local]\nbase_url = "{endpoint.base_url}"\n'
    for file in (folder / "home" / "config.toml", folder / "interlock.toml"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(model + servers)
    return folder / "interlock.toml"


@pytest.mark.parametrize("guide", GUIDES)
def test_every_example_of_a_guide_is_part_of_a_file_that_runs(guide: str) -> None:
    text = (DOCS / guide).read_text(encoding="utf-8")
    files = [file.read_text(encoding="utf-8") for file in EXAMPLES.iterdir() if file.is_file()]
    blocks = re.findall(r"^```\w+\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert [block for block in blocks if not any(block in file for file in files)] == []


@pytest.mark.parametrize("guide", GUIDES)
def test_what_a_guide_links_to_is_there(guide: str) -> None:
    text = (DOCS / guide).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [target for target in targets if not (DOCS / target).exists()] == []


def test_the_reference_of_the_configuration_is_current() -> None:
    assert undescribed() == {}
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m docs.reference.configuration"


@requirement("CFG-1", "CFG-4")
def test_the_example_of_a_configuration_has_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "get_password", lambda service, name: f"{service} {name}")
    configuration = load(EXAMPLES / "config.toml", environment={"DOCS_TOKEN": "d0cs"})
    assert configuration.problems == ()
    assert list(configuration.servers) == ["docs", "git", "time"]
    assert "d0cs" not in repr(configuration)


async def test_the_first_steps_work_as_they_stand(tmp_path: Path) -> None:
    printed = await run(tmp_path, "sh", str(EXAMPLES / "first_steps.sh"))
    assert "mcp__time__get_current_time" in printed
    assert '"timezone":"Europe/Rome"' in printed
    assert "mcp_servers" not in (tmp_path / "home" / "config.toml").read_text()


async def test_a_model_is_asked_as_the_guide_does(tmp_path: Path) -> None:
    (tmp_path / "answer.schema.json").write_text((EXAMPLES / "answer.schema.json").read_text())
    form = '{"hour": 7, "minute": 5}'
    async with ScriptedEndpoint(TIME, Say("five past seven"), Say("a clock"), Say(form)) as endpoint:
        configure(tmp_path, endpoint)
        printed = await run(tmp_path, "sh", str(EXAMPLES / "asking.sh"))
    assert printed.splitlines()[:2] == ["five past seven", "a clock"]
    assert json.loads((tmp_path / "answer.json").read_text()) == json.loads(form)
    assert [request.body["model"] for request in endpoint.requests] == ["m", "m", "small", "m"]
    assert "Mend the clock" in json.dumps(endpoint.requests[2].body["input"])


async def test_interlocks_own_loop_tells_of_calls_and_the_answer(tmp_path: Path) -> None:
    async with ScriptedEndpoint(TIME, Say("five past seven")) as endpoint:
        file = configure(tmp_path, endpoint)
        printed = await run(tmp_path, sys.executable, str(EXAMPLES / "one_turn.py"), str(file), "what time is it?")
    assert printed.splitlines() == ["time get_current_time: completed", "five past seven"]


async def test_servers_are_asked_without_a_model(tmp_path: Path) -> None:
    file = configure(tmp_path, servers=SERVERS.replace(".time]", ".library]").replace(*LIBRARY))
    printed = await run(tmp_path, sys.executable, str(EXAMPLES / "asking_servers.py"), str(file), "library")
    offers, uris, text = printed.splitlines()[:3]
    assert "resources=True" in offers
    assert "library://books/moss" in uris or "library://books/signals" in uris
    assert text.startswith("Moss, page 7:")


# ---- your own loop


@asynccontextmanager
async def chat_endpoint(*answers: dict[str, Any]) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Chat Completions without streaming: an answer for each request, in order; and the requests."""
    requests: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append(await request.json())
        message = {"role": "assistant", "content": None, **answers[len(requests) - 1]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response(
            {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        )

    application = web.Application()
    application.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", requests
    finally:
        await runner.cleanup()


@requirement("CAT-6")
async def test_a_loop_of_ones_own_offers_tools_and_runs_calls(tmp_path: Path) -> None:
    function = {"name": TIME.name, "arguments": TIME.arguments_text()}
    calls = {"tool_calls": [{"id": "call-1", "type": "function", "function": function}]}
    async with chat_endpoint(calls, {"content": "five past seven"}) as (address, requests):
        file = configure(tmp_path)
        example = str(EXAMPLES / "own_loop.py")
        printed = await run(tmp_path, sys.executable, example, str(file), "m", "what time?", OPENAI_BASE_URL=address)
    assert printed == "five past seven\n"
    assert TIME.name in [tool["function"]["name"] for tool in requests[0]["tools"]]
    told = requests[1]["messages"][-1]
    assert (told["role"], told["tool_call_id"]) == ("tool", "call-1")
    assert json.loads(told["content"])["timezone"] == "Europe/Rome"


def test_what_the_page_of_troubles_quotes_is_what_is_said() -> None:
    said = "\n".join(
        str(node.value)
        for file in (DOCS.parent / "src" / "interlock").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    )
    table = (DOCS / "troubleshooting.md").read_text(encoding="utf-8").partition("| what you see |")[2]
    quoted = re.findall(r"^\| `([^`]+(?:`[^`|]+`[^`|]*)*)` \|", table, flags=re.MULTILINE)
    assert len(quoted) > 10
    pieces = [piece.strip(" ,;") for quote in quoted for piece in re.split(r"…|'[^']*'|\[\d\]", quote)]
    assert [piece for piece in pieces if len(piece) > 5 and piece not in said] == []
