"""The app server as a process, with a home folder, a scripted model endpoint and scripted servers."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.testing import Call, Say, ScriptedEndpoint
from tests.surroundings import surroundings

COMMAND = (sys.executable, "-m", "interlock", "app-server")
INTERLOCK = Path(sys.executable).parent / "interlock"
PATIENCE = 60.0

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ASKING: dict[str, Any] = {
    "tools": [
        {
            "name": "ask",
            "annotations": {"readOnlyHint": True},
            "do": [{"ask": {"message": "Your name?", "requestedSchema": FORM}}],
        }
    ],
    "resources": [{"uri": "s://one", "name": "one", "mimeType": "text/plain", "text": "first"}],
}


@dataclass(frozen=True, slots=True)
class Home:
    """A home folder with a configuration."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return surroundings(INTERLOCK_HOME=str(self.folder))

    def start(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*COMMAND, *arguments], env=self.environment, cwd=self.folder, **streams)

    def shell(self, script: str) -> str:
        """The output of a shell script in which `interlock` can be called."""
        environment = {**self.environment, "PATH": f"{INTERLOCK.parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", script],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the block, if it did not end by itself."""
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def listening(home: Home, *arguments: str) -> Iterator[str]:
    """A server that listens; its address."""
    with ended(home.start(*arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said = line.decode().strip()
            if said.startswith("listening on "):
                yield said.removeprefix("listening on ")
                return
        raise AssertionError("the server does not listen")


def configuration(folder: Path, base_url: str) -> None:
    """Write a configuration with a model at `base_url` and a server whose tool asks."""
    script = folder / "script.json"
    script.write_text(json.dumps(ASKING), encoding="utf-8")
    arguments = json.dumps(["-m", "interlock.testing.server", str(script)])
    (folder / "config.toml").write_text(
        f"""
model = "scripted"
model_provider = "lab"

[model_providers.lab]
name = "lab"
base_url = "{base_url}"

[mcp_servers.s]
command = {json.dumps(sys.executable)}
args = {arguments}
env_vars = ["PYTHONPATH"]
required = true
startup_timeout_sec = 40
""",
        encoding="utf-8",
    )


@asynccontextmanager
async def configured(folder: Path) -> AsyncIterator[Home]:
    """A home whose model calls the tool that asks, then says that it is done."""
    async with ScriptedEndpoint(Call("mcp__s__ask", {}, "c1"), Say("All done", piece=3), Say("again")) as endpoint:
        configuration(folder, endpoint.base_url)
        yield Home(folder)
