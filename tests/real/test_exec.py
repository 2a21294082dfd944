"""`interlock exec` against an endpoint that speaks the real dialects, over servers that nobody here wrote."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock.testing import Call, RecordedRequest, Refuse, Say, ScriptedEndpoint
from tests.real.servers import SCRIPTS
from tests.surroundings import surroundings

pytestmark = pytest.mark.anyio


def configured(folder: Path, base_url: str, wire_api: str) -> Path:
    file = folder / "config.toml"
    command = json.dumps(str(SCRIPTS / "mcp-server-time"))
    file.write_text(
        f"""
model = "some-model"
model_provider = "local"

[model_providers.local]
base_url = "{base_url}"
env_key = "LOCAL_KEY"
wire_api = "{wire_api}"
request_max_retries = 0
stream_max_retries = 0

[mcp_servers.time]
command = {command}
required = true
"""
    )
    return file


async def interlock(folder: Path, *arguments: str) -> tuple[int, str, str]:
    environment = surroundings(HOME=str(folder), INTERLOCK_HOME=str(folder), LOCAL_KEY="k-123")
    with anyio.fail_after(60):
        done = await anyio.run_process(
            [sys.executable, "-m", "interlock", *arguments], env=environment, cwd=folder, check=False
        )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def ask_for_the_time(request: RecordedRequest) -> Call:
    """Call the tool under the name by which it was offered."""
    functions: list[dict[str, Any]] = [tool.get("function", tool) for tool in request.body["tools"]]
    name = next(function["name"] for function in functions if "get_current_time" in function["name"])
    return Call(name, {"timezone": "Asia/Tokyo"})


def tell_the_time(request: RecordedRequest) -> Say:
    told = json.dumps(request.body)
    return Say("it is some time in Tokyo" if "Asia/Tokyo" in told and "datetime" in told else "I was told nothing")


@pytest.mark.parametrize("wire_api", ["responses", "chat"])
async def test_a_turn_with_a_call_ends_with_the_models_last_message_on_stdout(tmp_path: Path, wire_api: str) -> None:
    async with ScriptedEndpoint(ask_for_the_time, tell_the_time) as endpoint:
        config = configured(tmp_path, endpoint.base_url, wire_api)
        status, output, errors = await interlock(
            tmp_path, "exec", "--config", str(config), "--allow-tools", "What time is it in Tokyo?"
        )
    assert (status, output.strip()) == (0, "it is some time in Tokyo"), errors
    assert [request.headers["authorization"] for request in endpoint.requests] == ["Bearer k-123"] * 2
    assert endpoint.requests[0].body["model"] == "some-model"
    assert "k-123" not in output + errors


async def test_a_refusal_of_the_endpoint_is_one_sentence_on_stderr(tmp_path: Path) -> None:
    async with ScriptedEndpoint(Refuse(401, "wrong key")) as endpoint:
        config = configured(tmp_path, endpoint.base_url, "responses")
        status, output, errors = await interlock(tmp_path, "exec", "--config", str(config), "hello")
    assert (status, output) == (1, "")
    assert "refused the key from environment variable LOCAL_KEY (status 401): wrong key" in errors
    assert "Traceback" not in errors
