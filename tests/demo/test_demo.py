"""The demonstration as a stranger runs it: a process, its output, what it leaves behind."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it ships no types
import pytest

from interlock import Host
from interlock.vocabulary.item import McpToolCallItem
from tests.surroundings import surroundings

COMMAND = [sys.executable, "-m", "interlock", "demo"]
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    output: str
    errors: str
    home: Path


def environment(home: Path, **more: str) -> dict[str, str]:
    return surroundings(INTERLOCK_HOME=str(home), **more)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    home = tmp_path_factory.mktemp("home")
    done = subprocess.run(
        COMMAND, env=environment(home), capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
    )
    return Ran(done.returncode, done.stdout, done.stderr, home)


def test_it_runs_on_bare_defaults_and_says_nothing_on_stderr(ran: Ran) -> None:
    assert (ran.status, ran.errors) == (0, "")


def test_in_a_pipe_it_writes_plain_text(ran: Ran) -> None:
    assert "\x1b" not in ran.output
    assert max(len(line) for line in ran.output.splitlines()) < 500


def test_it_shows_the_catalogue_that_the_model_saw(ran: Ran) -> None:
    table = ran.output.partition("The tools that the model sees")[2].partition("The turn")[0]
    assert re.search(r"mcp__workshop__pulp +workshop +destroys", table)
    assert re.search(r"read_mcp_resource +the host +reads", table)


def test_the_dead_server_is_named_beside_what_the_others_gave(ran: Ran) -> None:
    assert re.search(r"archive +stdio +failed .*exit code 1.*the disk is not mounted", ran.output)
    assert re.search(
        r"✓ all servers  list_mcp_resources  \d+ ms  8 resources from library, weather; not from archive: ", ran.output
    )


def test_pages_are_walked_to_the_last_one(ran: Ran) -> None:
    pages = re.findall(r"✓ library  list_mcp_resources  \d+ ms  (.*)", ran.output)
    assert pages == ["3 resources, and a cursor to the next page"] * 2 + ["1 resource, the last page"]


def test_progress_is_shown_while_the_call_runs(ran: Ran) -> None:
    assert 0 < ran.output.index("… workshop  bind  3 of 4") < ran.output.index("✓ workshop  bind")


def test_failed_and_refused_calls_are_told_apart_from_good_ones(ran: Ran) -> None:
    assert re.search(r"✗ workshop  print_label  \d+ ms  .*out of ink", ran.output)
    assert re.search(r"✗ workshop  pulp  \d+ ms  .*was not called", ran.output)
    assert "12 calls began and 12 ended, 2 failed; the turn completed." in ran.output


@pytest.mark.anyio
async def test_the_thread_is_stored_where_the_last_lines_say(ran: Ran) -> None:
    match = re.search(r"thread (\S+) in (.+)\n  see it again: (.+)", ran.output)
    assert match is not None
    thread, place, again = match.groups()
    program, *words = shlex.split(again)
    assert (Path(place), Path(program).name, words) == (
        ran.home / "interlock.db",
        "interlock",
        ["threads", "show", thread],
    )
    async with Host(store=place) as host:
        state = await host.read_thread(thread)
    calls = [item for turn in state.turns for item in turn.items if isinstance(item, McpToolCallItem)]
    assert [call.status for call in calls].count("completed") == 10
    assert all(call.duration is not None for call in calls)


def test_it_ends_in_order_and_leaves_no_process_when_its_reader_goes_away(tmp_path: Path) -> None:
    process = subprocess.Popen(COMMAND, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    while b"The servers" not in process.stdout.readline():
        pass
    children = psutil.Process(process.pid).children(recursive=True)
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(PATIENCE) == 0
    assert errors == b""
    assert len(children) >= 3
    assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []
    process.stderr.close()


def test_when_it_is_killed_its_servers_end_too(tmp_path: Path) -> None:
    process = subprocess.Popen(COMMAND, env=environment(tmp_path), stdout=subprocess.PIPE)
    assert process.stdout is not None
    while b"The servers" not in process.stdout.readline():
        pass
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(10)
    process.stdout.close()
    assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []


def test_its_http_server_ends_with_whoever_started_it_also_while_it_loads(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never")
    (tmp_path / "uvicorn.py").write_text(f"open({str(tmp_path / 'never')!r})")  # loading it takes for ever
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = subprocess.Popen(
            [sys.executable, "-m", "interlock.demo.weather_server", str(listening.fileno())],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
        )
    try:
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0


@pytest.mark.parametrize("end", ["kill", "interrupt"])
def test_stopped_at_any_moment_it_goes_on_with_one_command_that_shows_what_was_interrupted(
    tmp_path: Path, end: str
) -> None:
    process = subprocess.Popen(COMMAND, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = ""
    while "bind  1 of 4" not in told:
        line = process.stdout.readline()
        assert line, told
        told += line
    process.kill() if end == "kill" else process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    process.stdout.close()
    again = re.search(r"go on with: (.+)", told)
    assert again is not None
    program, *words = shlex.split(again.group(1))
    assert (Path(program).name, words[:2]) == ("interlock", ["demo", "--resume"])

    done = subprocess.run(
        [*COMMAND, *words[1:]],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout
    interrupted = shown.partition("Where the last demonstration was interrupted")[2].partition("stop me")[0]
    assert re.search(r"its turn was cut off after \d+ calls had ended", interrupted), interrupted
    assert re.search(r"✗ workshop  bind .*effect.* unknown", interrupted), interrupted
    assert "12 calls began and 12 ended, 2 failed; the turn completed." in shown
