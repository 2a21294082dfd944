"""The examples about questions, run as a reader would run them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio.to_thread
import pytest

from interlock.testing import Call, Say, ScriptedEndpoint
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
SCRIPT = {
    "tools": [
        {"name": "write_file", "do": [{"text": "written"}]},
        {"name": "delete_file", "do": [{"text": "deleted"}]},
    ]
}


def configured(folder: Path, endpoint: ScriptedEndpoint) -> Path:
    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    arguments = json.dumps(["-m", "interlock.testing.server", str(script)])
    file = folder / "interlock.toml"
    file.write_text(
        f'model = "scripted"\nmodel_provider = "local"\n'
        f'[model_providers.local]\nbase_url = "{endpoint.base_url}"\n'
        f"[mcp_servers.disk]\nrequired = true\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n"
        'env_vars = ["PYTHONPATH"]\n'
    )
    return file


async def run(example: str, folder: Path, config: Path, typed: str = "") -> str:
    def process() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(EXAMPLES / example), str(config), "tidy up"],
            env={**os.environ, "INTERLOCK_HOME": str(folder / "home"), "OPENAI_API_KEY": "k"},
            input=typed,
            capture_output=True,
            text=True,
            timeout=60,
        )

    done = await anyio.to_thread.run_sync(process)
    assert done.returncode == 0, done.stderr
    return done.stdout


@requirement("APR-2", "APR-3")
async def test_the_program_of_ten_lines_answers_what_is_asked(tmp_path: Path) -> None:
    calls = [Call("mcp__disk__write_file", {"path": "a"}), Call("mcp__disk__delete_file", {"path": "b"})]
    async with ScriptedEndpoint(*calls, Say("tidied up")) as endpoint:
        output = await run("answering.py", tmp_path, configured(tmp_path, endpoint), "yes\nno\n")
        told = json.dumps([request.body for request in endpoint.requests], default=str)

    assert output.count("disk asks: Allow server 'disk' to run its tool") == 2
    assert output.splitlines()[-1].endswith("tidied up")
    assert "written" in told
    assert "the user declined it" in told


@requirement("QST-10")
async def test_the_reviewer_of_the_example_decides_without_anybody(tmp_path: Path) -> None:
    calls = [
        Call("mcp__disk__write_file", {"path": "drafts/a"}),
        Call("mcp__disk__delete_file", {"path": "drafts/a"}),
        Call("mcp__disk__write_file", {"path": "drafts/../x"}),
    ]
    async with ScriptedEndpoint(*calls, Say("tidied up")) as endpoint:
        output = await run("reviewing.py", tmp_path, configured(tmp_path, endpoint))
        told = json.dumps([request.body for request in endpoint.requests], default=str)

    assert output == "tidied up\n"
    assert "written" in told
    assert "nothing is deleted here" in told
    assert "nobody is listening" in told
