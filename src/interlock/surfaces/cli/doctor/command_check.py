"""Whether the command of a stdio server can be started at all, before it is.

Owns: looking for the command, what a file needs to be startable, words that only a shell understands.
Never: starts anything.
"""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from interlock.connections.process import child_environment
from interlock.surfaces.cli.doctor.finding import Finding, Level
from interlock.vocabulary.secret import reveal
from interlock.vocabulary.server import ServerConfig, StdioTransport

PROGRAM_MAGIC = (b"\x7fELF", b"\xfe\xed\xfa", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How programs of Linux and macOS begin."""
SHELLS = {"sh", "bash", "zsh", "dash", "fish"}
SHELL_WORDS = {"source", ".", "cd", "export", "alias", "eval", "exec", "set", "nvm", "conda"}
"""Functions and builtins of shells that people write as commands."""
OPERATORS = {"&&", "||", "|", ";", ">", ">>", "<", "&", "2>&1"}
EXPANSION = re.compile(r"^~(/|$)|\$\w|\$\{\w|\$\(|`")
SHIMS = re.compile(r"/\.?(pyenv|asdf|mise|rbenv|nodenv|goenv)/(?:.*/)?shims/")
USUAL_FOLDERS = (
    "~/.local/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "~/.cargo/bin",
    "~/.bun/bin",
    "~/.deno/bin",
    "~/.volta/bin",
    "~/go/bin",
    "/usr/bin",
    "/snap/bin",
)
PROVIDERS = {
    "npx": "install Node.js, which brings it along",
    "npm": "install Node.js, which brings it along",
    "node": "install Node.js",
    "uvx": "install uv, which brings it along",
    "uv": "install uv",
    "docker": "install Docker",
    "deno": "install Deno",
    "bunx": "install Bun, which brings it along",
}


def examine(config: ServerConfig, transport: StdioTransport) -> Iterator[Finding]:
    """What stands in the way of starting it. An "error" means that starting fails."""
    environment = child_environment(transport)
    command = reveal(transport.command)
    folder = Path.cwd() if transport.cwd is None else Path(reveal(transport.cwd))
    examination = _Examination(config.name, command, str(transport.command), environment, folder)
    if not os.path.isdir(folder):
        yield examination.finding(
            "error", "no_folder", f"its working folder {transport.cwd} does not exist", "create it, or correct `cwd`"
        )
        return
    yield from examination.command()
    if Path(command).name not in SHELLS:
        yield from examination.shell_words([str(argument) for argument in transport.args])


def _words(line: str) -> list[str]:
    """As a shell takes them apart, or at blanks where its quotes do not close."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


class _Examination:
    """One command line: `shown` is the command as it may be shown."""

    def __init__(self, server: str, command: str, shown: str, environment: Mapping[str, str], folder: Path) -> None:
        self._server = server
        self._command = command
        self._shown = shown
        self._path = environment.get("PATH", os.defpath)
        self._folder = folder

    def finding(self, level: Level, kind: str, message: str, fix: str) -> Finding:
        return Finding(subject=self._server, level=level, kind=kind, message=message, fix=fix)

    def command(self) -> Iterator[Finding]:
        file = self._file()
        if file is None:
            yield self._not_found()
        elif not os.access(file, os.X_OK):
            yield self.finding(
                "error", "not_executable", f"{file} may not be executed", f"run: chmod +x {shlex.quote(str(file))}"
            )
        else:
            yield from self._startable(file)

    def shell_words(self, arguments: list[str]) -> Iterator[Finding]:
        """Servers are started without a shell: nobody expands or pipes."""
        for place, argument in enumerate(arguments):
            if argument in OPERATORS or EXPANSION.search(argument):
                line = shlex.join([self._shown, *arguments]).replace("'", "")
                yield self.finding(
                    "warning",
                    "shell_syntax",
                    f"`args[{place}]` {argument!r} is passed on as it is: servers are started without a shell",
                    f'write the value itself, or let a shell read it: command = "sh", args = ["-c", "exec {line}"]',
                )

    def _file(self) -> Path | None:
        """What would be started; None if nothing has that name."""
        if "/" in self._command:
            file = self._folder / self._command
            return file if os.path.isfile(file) else None
        found = shutil.which(self._command, mode=os.F_OK, path=self._path)
        return None if found is None else Path(found)

    def _not_found(self) -> Finding:
        words = _words(self._command)
        if len(words) > 1 and shutil.which(words[0], path=self._path) is not None:
            arguments = ", ".join(json.dumps(word, ensure_ascii=False) for word in words[1:])
            message = f"`command` {self._shown!r} is a whole command line; it names one program"
            fix = f'write the words apart: command = "{words[0]}", args = [{arguments}]'
            return self.finding("error", "command_not_found", message, fix)
        if "/" in self._command:
            place = self._folder / self._command
            shown = self._folder / self._shown
            where = f"{shown} is a folder" if os.path.isdir(place) else f"there is no file {shown}"
            if self._command.startswith("~"):
                return self.finding("error", "command_not_found", where, "write the path in full: no shell expands ~")
            fix = "correct `command`; a relative one is looked for in `cwd`, else where the host was started"
            return self.finding("error", "command_not_found", where, fix)
        message = f"command not found: {self._shown!r}; searched PATH {self._path}"
        return self.finding("error", "command_not_found", message, self._way_to_find())

    def _way_to_find(self) -> str:
        if self._command in SHELL_WORDS:
            return f'it is a word of a shell: command = "bash", args = ["-lc", "{self._command} ..."]'
        elsewhere = self._elsewhere()
        if elsewhere is not None:
            return (
                f"it is in {elsewhere.parent}: add that to the server's PATH, "
                f'env = {{ PATH = "{elsewhere.parent}:{self._path}" }}'
            )
        if self._command == "python" and shutil.which("python3", path=self._path):
            return 'write command = "python3"'
        general = "write its full path as `command`, or set PATH in the server's `env`"
        return f"{PROVIDERS.get(self._command, 'install it')}; or {general}"

    def _elsewhere(self) -> Path | None:
        """Where installers put commands: a login shell finds them there, a program that a desktop started does not."""
        folders = [Path(folder).expanduser() for folder in USUAL_FOLDERS]
        folders += sorted(Path.home().glob(".nvm/versions/node/*/bin"), reverse=True)
        return next((f / self._command for f in folders if os.access(f / self._command, os.X_OK)), None)

    def _startable(self, file: Path) -> Iterator[Finding]:
        try:
            with file.open("rb") as stream:
                head = stream.read(256)
        except OSError:
            return  # it may be executed and not read: a program
        if head.startswith(b"#!"):
            first = head[2:].split(b"\n")[0]
            if first.endswith(b"\r"):
                message = f"{file} is a script with lines that end as on Windows, which hides its interpreter"
                yield self.finding("error", "line_ends", message, f"run: sed -i 's/\\r$//' {shlex.quote(str(file))}")
            else:
                yield from self._interpreter(file, first.decode("utf-8", "replace").split())
        elif not head.startswith(PROGRAM_MAGIC):
            yield self.finding(
                "error",
                "needs_shell",
                f'{file} is a script without a first line such as "#!/bin/sh": a shell can start it, a host cannot',
                f'add that line, or write command = "sh", args = ["{file}", ...]',
            )
        if (manager := SHIMS.search(str(file))) is not None:
            yield self.finding(
                "note",
                "shim",
                f"{file} is a shim of {manager[1]}: what it starts depends on the folder and on variables that a "
                "server is not given",
                f"write the full path of the program itself, which `{manager[1]} which {self._command}` shows",
            )

    def _interpreter(self, file: Path, words: list[str]) -> Iterator[Finding]:
        """`#!/usr/bin/env node` needs node on the server's own PATH."""
        looked_up = bool(words) and Path(words[0]).name == "env"
        candidates = (
            [word for word in words[1:] if not word.startswith("-") and "=" not in word] if looked_up else words
        )
        if not candidates or shutil.which(candidates[0], path=self._path) is not None:
            return
        name = candidates[0]
        where = f"which its PATH does not have: {self._path}" if looked_up else "which does not exist"
        yield self.finding(
            "error",
            "interpreter_not_found",
            f"{file} is a script for {name}, {where}",
            f"install {Path(name).name}, or add its folder to PATH in the server's `env`",
        )
