"""The command as a process: its start, its interruption, what it loads."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.manifest import requirement
from tests.surfaces.cli.shell import COMMAND, PATIENCE, Shell


def loaded_before(code: str) -> set[str]:
    """The modules that an interpreter has loaded after `code`."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return set(done.stdout.splitlines()[-1].split())


def loaded_by(*arguments: str) -> set[str]:
    """The modules that our command has loaded when it ends."""
    return loaded_before(
        f"import sys\nfrom interlock.surfaces.cli.main import main\nsys.argv = ['interlock', *{arguments}]\n"
        "try: main()\nexcept SystemExit: pass"
    )


def announced(pipe: Path) -> list[int]:
    """The processes whose numbers are written into the named pipe, once they are; descriptors that end with them."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        readable, _, _ = select.select([descriptor], [], [], PATIENCE)
        assert readable
        return [os.pidfd_open(int(pid)) for pid in os.read(descriptor, 1024).split()]
    finally:
        os.close(descriptor)


def test_help_loads_few_modules() -> None:
    """What the time goes to; how long it takes is measured in benchmarks/cli_start.py."""
    assert len(loaded_by("--help") - loaded_before("pass")) <= 60


def test_help_of_a_command_loads_little_more_than_typer() -> None:
    assert len(loaded_by("mcp", "--help") - loaded_before("import typer")) <= 30


def test_the_top_help_is_typers_word_for_word_at_every_width() -> None:
    environment = {**os.environ, "COLUMNS": "80"}
    ours = subprocess.run([*COMMAND, "--help"], env=environment, capture_output=True, text=True, timeout=PATIENCE)
    code = (
        "import typer\nfrom interlock.surfaces.cli.app import app\n"
        "typer.main.get_command(app)(['--help'], prog_name='interlock', standalone_mode=False)"
    )
    typers = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ours.stdout == typers.stdout
    narrow = subprocess.run(
        [*COMMAND, "--help"], env={**os.environ, "COLUMNS": "50"}, capture_output=True, text=True, timeout=PATIENCE
    )
    assert max(map(len, narrow.stdout.splitlines())) <= 50


@pytest.mark.parametrize("arguments", [["--help"], ["mcp", "--help"], ["exec", "--help"]])
def test_help_loads_nothing_of_what_commands_need(arguments: list[str]) -> None:
    slow = {"rich", "anyio", "pydantic", "mcp", "asyncio", "sqlalchemy", "aiohttp"}
    assert loaded_by(*arguments) & slow == set()


def test_the_version_is_shown(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("--version")
    assert (done.status, done.output) == (0, f"interlock {version('interlock')}\n")


def test_help_names_every_command() -> None:
    script = Path(sys.executable).parent / "interlock"
    done = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=PATIENCE)
    assert [word for word in ("demo", "exec", "mcp", "threads") if word not in done.stdout] == []


@requirement("CON-5")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_ends_within_two_seconds_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    shell = Shell(tmp_path)
    pipe = tmp_path / "started"
    os.mkfifo(pipe)
    stubborn = f"trap '' TERM INT; sleep 600 & echo $$ $! > {pipe}; while true; do wait; done"
    shell.configure(f"[mcp_servers.stubborn]\ncommand = 'bash'\nargs = ['-c', {json.dumps(stubborn)}]")
    with subprocess.Popen(
        [*COMMAND, "mcp", "list"], cwd=tmp_path, env=shell.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        servers = announced(pipe)
        began = time.monotonic()
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE)

    assert time.monotonic() - began < 4.5  # two are promised; unhurried, the server alone is given five
    assert process.returncode == 128 + number
    assert (output, errors) == (b"", b"")
    for server in servers:
        ended, _, _ = select.select([server], [], [], PATIENCE)  # it was killed; the kernel may need a moment
        assert ended
        os.close(server)


def test_a_reader_that_leaves_early_is_no_error(shell: Shell) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [*COMMAND, "mcp", "tools"], cwd=shell.folder, env=shell.environment(), stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert errors == b""


@pytest.mark.parametrize("arguments", [["--help"], ["mcp", "--help"], ["threads", "list", "--json"], ["mcp", "list"]])
def test_closed_streams_take_every_text_and_nothing_else_gets_their_numbers(shell: Shell, arguments: list[str]) -> None:
    shell.configure("")
    closed = ["bash", "-c", 'exec 0<&- 1>&-; exec "$@"', "bash", *COMMAND, *arguments]
    done = subprocess.run(closed, cwd=shell.folder, env=shell.environment(), capture_output=True, timeout=PATIENCE)
    assert (done.returncode, b"error" in done.stderr, b"Traceback" in done.stderr) == (0, False, False)


def test_a_full_disk_is_told_of_in_one_sentence(shell: Shell) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "threads", "list", "--json"],
            cwd=shell.folder,
            env=shell.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot go on: no space left on device; ")


def test_a_locale_without_the_letters_of_a_text_gets_escapes(shell: Shell) -> None:
    shell.configure("[mcp_servers.other]\ncommand = 'x'\nenabled = false\nargs = ['日', '😀', 'é']")
    done = shell.run("mcp", "get", "other", PYTHONIOENCODING="ascii")
    assert (done.status, done.errors) == (0, "")
    assert r"\u65e5 \U0001f600 \xe9" in done.output
    (args,) = [
        setting["value"]
        for setting in shell.run("mcp", "get", "other", "--json", PYTHONIOENCODING="ascii").json["settings"]
        if setting["key"] == "args"
    ]
    assert args == ["日", "😀", "é"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["mcp", "call", "a", "tool", '{"a": "\udcff"}'],
        ["mcp", "call", "a", "tool", r'{"a": "\ud800"}'],
        ["mcp", "add", "b", "--", "\udcff"],
        ["exec", "\udcff"],
    ],
)
def test_words_that_are_not_utf8_are_refused_before_anything_starts_or_is_written(
    shell: Shell, arguments: list[str]
) -> None:
    shell.configure(
        "model = 'm'\nmodel_provider = 'l'\n[model_providers.l]\nbase_url = 'http://127.0.0.1:9/v1'\n"
        "[mcp_servers.a]\ncommand = 'absent'\nenabled = true"
    )
    before = (shell.home / "config.toml").read_bytes()
    done = shell.run(*arguments)
    assert (done.status, done.output) == (2, "")
    assert "not UTF-8; convert it" in done.errors
    assert (shell.home / "config.toml").read_bytes() == before


def test_a_folder_that_was_deleted_is_named_as_what_is_wrong(shell: Shell) -> None:
    gone = ["bash", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "bash", *COMMAND, "mcp", "list"]
    done = subprocess.run(
        gone, cwd=shell.folder, env=shell.environment(), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 2
    assert done.stderr == "error: cannot begin: the folder where you are was deleted; go to another one\n"


@pytest.mark.parametrize("arguments", [["mcp", "list"], ["threads", "list"]])
def test_a_home_that_cannot_be_looked_into_is_named(shell: Shell, arguments: list[str]) -> None:
    home = "/" + "x" * 300  # as a folder of root's is for others; a name too long is refused to root as well
    done = shell.run(*arguments, INTERLOCK_HOME=home)
    assert done.status != 0
    assert f"{home}/" in done.errors
    assert "file name too long" in done.errors


def test_a_defect_is_one_sentence_unless_a_traceback_was_asked_for(shell: Shell) -> None:
    code = (
        "import interlock.surfaces.cli.running as running\n"
        "async def work(closing): raise KeyError('inside')\n"
        "print(running.run(work))"
    )

    def errors(**environment: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code],
            env=shell.environment(**environment),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        ).stderr

    assert errors() == (
        "error: interlock broke inside (KeyError); set INTERLOCK_TRACEBACK=1 to see where, and report it\n"
    )
    assert "Traceback" in errors(INTERLOCK_TRACEBACK="1")
