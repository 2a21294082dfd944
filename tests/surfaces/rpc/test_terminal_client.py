"""The terminal client of the program whose wire this is, against our server, unchanged (RPC-7).

It is large, so no script installs it: `npm install @openai/codex@0.150.0` in any folder, then INTERLOCK_CODEX names its
`node_modules/.bin/codex`.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from interlock.testing import Call, RecordedRequest, Say, ScriptedEndpoint
from tests.manifest import requirement
from tests.surfaces.rpc.programs import Home, configuration, listening

pytestmark = pytest.mark.anyio

CODEX = os.environ.get("INTERLOCK_CODEX", "")
CLIENT = """model = "scripted"
model_provider = "lab"
[model_providers.lab]
name = "lab"
base_url = "http://127.0.0.1:1/v1"
[tui]
animations = false
"""
ANSWERS = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;c",
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b]10;?": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}
"""What a terminal says when it is asked about itself."""


class Terminal:
    """A client at a terminal of 120 columns."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = ""

    async def shows(self, text: str) -> None:
        """Return once `text`, blanks apart, has been written since the last time."""
        assert await self._appears(text, within=45), f"{text!r} is not in {self._seen[-2000:]!r}"

    async def _appears(self, text: str, within: float) -> bool:
        wanted = text.replace(" ", "")
        with anyio.move_on_after(within) as patience:
            while wanted not in self._seen:
                await anyio.wait_readable(self._descriptor)
                data = os.read(self._descriptor, 65536)
                for question, answer in ANSWERS.items():
                    os.write(self._descriptor, answer * data.count(question))
                self._seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07\x1b]*|\s", "", data.decode(errors="replace"))
        self._seen = self._seen.partition(wanted)[2] if wanted in self._seen else self._seen
        return not patience.cancelled_caught

    async def gives(self, keys: str, text: str) -> None:
        """Press `keys` until `text` is shown: some are ignored just after something appeared, or as part of a paste."""
        for _ in range(8):
            self.type(keys)
            if await self._appears(text, within=5):
                return
        raise AssertionError(f"{text!r} does not appear: {self._seen[-2000:]!r}")

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())


@contextmanager
def terminal(address: str, folder: Path) -> Iterator[Terminal]:
    home = folder / "client"
    home.mkdir()
    trusted = f'[projects."{folder}"]\ntrust_level = "trusted"\n'
    (home / "config.toml").write_text(CLIENT + trusted, encoding="utf-8")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = {**os.environ, "CODEX_HOME": str(home), "TERM": "xterm-256color"}
    client = subprocess.Popen(
        [CODEX, "--remote", address],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        client.terminate()
        client.wait(20)
        os.close(ours)


@requirement("RPC-7", "RPC-5")
@pytest.mark.skipif(not CODEX, reason="INTERLOCK_CODEX names no client; see the module's docstring")
async def test_the_terminal_client_shows_the_call_and_the_form_and_ends_the_turn(tmp_path: Path) -> None:
    answered: list[RecordedRequest] = []

    def answer(request: RecordedRequest) -> Say | Call:
        """The client asks for a title in a thread of its own, at about the same time."""
        text = str(request.body)
        if "task title" in text:
            return Say('{"title": "Call it"}')
        if "function_call_output" in text:
            answered.append(request)
            return Say("Everything is done.")
        return Call("mcp__s__ask", {}, "c1")

    async with ScriptedEndpoint(*[answer] * 8) as endpoint:
        home = Home(tmp_path)
        configuration(tmp_path, endpoint.base_url)
        with listening(home, "--listen", "ws://127.0.0.1:0") as address, terminal(address, tmp_path) as screen:
            await screen.shows("Ask Codex to do anything")
            screen.type("call it")
            await screen.shows("call it")
            await screen.gives("\r", "Your name?")
            await screen.gives("Ada", "Ada")
            await screen.gives("\r", "Everything is done.")
    assert "Ada" in str(answered[0].body)
