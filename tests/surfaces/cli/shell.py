"""Running `interlock` as people run it: a process of its own, in a pipe or at a terminal."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.surroundings import surroundings

COMMAND = (sys.executable, "-m", "interlock")
PATIENCE = 60.0

SCRIPT: dict[str, Any] = {
    "name": "scripted",
    "page_size": 1,
    "tools": [
        {
            "name": "echo",
            "description": "Says it again.\nAt length.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
        {
            "name": "fail",
            "inputSchema": {"type": "object"},
            "do": [{"result": {"content": [{"type": "text", "text": "no such luck"}], "isError": True}}],
        },
        {"name": "hidden", "inputSchema": {"type": "object"}},
    ],
    "resources": [
        {"uri": "docs://guide", "name": "guide", "mimeType": "text/plain", "text": "the guide\x1b[31m"},
        {"uri": "docs://bytes", "name": "bytes", "mimeType": "image/png", "blob": "aGVsbG8="},
    ],
    "templates": [{"uriTemplate": "docs://{page}", "name": "page"}],
}


@dataclass(frozen=True, slots=True)
class Done:
    status: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.output)


@dataclass(frozen=True, slots=True)
class Shell:
    """A folder to run commands in, with a home folder of its own."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self, **more: str) -> dict[str, str]:
        return surroundings(**{"INTERLOCK_HOME": str(self.home), "COLUMNS": "200", **more})

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> Done:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment(**environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def run_at_terminal(
        self,
        *arguments: str,
        typed: str = "",
        after: tuple[str, str | signal.Signals] | None = None,
        **environment: str,
    ) -> str:
        """Everything that a terminal of `COLUMNS` columns (200) gets to see, what is typed included.

        `after`: words, and what is typed, or sent as a signal, once they were seen.
        """
        ours, theirs = pty.openpty()
        os.write(ours, typed.encode())
        variables = self.environment(TERM="xterm-256color", **environment)
        termios.tcsetwinsize(theirs, (50, int(variables["COLUMNS"])))
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=variables,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        seen = b""
        try:
            for piece in pieces(ours, process):
                seen += piece
                if after is not None and after[0].encode() in seen:
                    if isinstance(after[1], signal.Signals):
                        interrupt(process, after[1])
                    else:
                        os.write(ours, after[1].encode())
                    after = None
        finally:
            os.close(ours)
            process.wait(PATIENCE)
        return seen.decode()

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.write_text(text, encoding="utf-8")
        return file

    def configure(self, *tables: str) -> None:
        """The home folder's config.toml."""
        self.home.mkdir(exist_ok=True)
        (self.home / "config.toml").write_text("\n".join(tables), encoding="utf-8")


def interrupt(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send the signal as a person would: again, if nothing comes of it. One that falls between Python's last look for
    signals and its read of the terminal is heeded only with the next key."""
    while process.poll() is None:
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)


def pieces(terminal: int, process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """What a process shows at its terminal, until it ends. One that shows nothing for long is killed, and told of."""
    while select.select([terminal], [], [], PATIENCE)[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux ends a terminal that nobody holds with EIO
            return
        if not piece:
            return
        yield piece
    process.kill()
    raise AssertionError(f"{process.args!r:.300} showed nothing for {PATIENCE:g} s and did not end")


def scripted(name: str, script: Path, more: str = "") -> str:
    """A table for a server that plays `script`."""
    arguments = json.dumps(["-m", "interlock.testing.server", str(script)])
    started = f"command = {json.dumps(sys.executable)}\nargs = {arguments}\nenv_vars = ['PYTHONPATH']"
    return f"[mcp_servers.{name}]\n{started}\n{more}"


EXITS = '[mcp_servers.exits]\ncommand = "false"\n'
SILENT = '[mcp_servers.silent]\ncommand = "sleep"\nargs = ["600"]\nstartup_timeout_sec = 0.2\nrestart = "never"\n'
BROKEN = '[mcp_servers.broken]\ncommand = "x"\nurl = "http://127.0.0.1:1"\n'
OFF = '[mcp_servers.off]\ncommand = "x"\nenabled = false\n'
