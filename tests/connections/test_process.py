"""Server processes: what they see, how they end, and that nothing is left of them."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import pytest

from interlock.connections import ledger, watchdog
from interlock.connections.process import (
    INHERITED,
    EndingTimes,
    ExitStatus,
    ServerProcess,
    child_environment,
    end_process,
    start_process,
)
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import StdioTransport
from tests.connections.servers import PATIENCE, alive, children, nothing_left_behind, scripted, until_gone
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

QUICK = EndingTimes(after_stdin=0.3, after_terminate=0.3, after_kill=5.0)


def transport(script: Mapping[str, object] | None = None) -> StdioTransport:
    made = scripted(script).transport
    assert isinstance(made, StdioTransport)
    return made


async def first_line(child: ServerProcess) -> dict[str, object]:
    """The first message of the server, as the sign that it is up."""
    with anyio.fail_after(PATIENCE):
        await anyio.wait_readable(child.stdout)
    message: dict[str, object] = json.loads(os.read(child.stdout, 65536).splitlines()[0])
    return message


async def forked(child: ServerProcess) -> int:
    parameters = (await first_line(child))["params"]
    assert isinstance(parameters, dict)
    return int(parameters["pid"])


@requirement("CFG-5")
def test_a_child_sees_the_allowlist_and_its_own_table_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not for servers")
    monkeypatch.setenv("LANG", "C.UTF-8")
    seen = child_environment(StdioTransport(command="x", env={"TOKEN": Secret("t"), "HOME": Secret("/elsewhere")}))
    assert set(seen) <= {*INHERITED, "TOKEN"}
    assert (seen["TOKEN"], seen["HOME"], seen["LANG"]) == ("t", "/elsewhere", "C.UTF-8")


async def test_a_missing_command_is_named_with_the_path_that_was_searched_and_the_way_out() -> None:
    missing = StdioTransport(command="no-such-command-anywhere", env={"PATH": Secret("/nowhere:/usr/nowhere")})
    with pytest.raises(ServerFailed) as caught:
        start_process("git", missing)
    text = caught.value.message
    assert "command not found: 'no-such-command-anywhere'" in text
    assert "searched PATH /nowhere:/usr/nowhere" in text
    assert "full path" in text
    assert caught.value.effect == "none"


async def test_a_path_that_leads_nowhere_is_told_with_the_folder_from_which_it_was_seen(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    cases = [
        (
            StdioTransport(command="bin/server", cwd=str(tmp_path)),
            f"there is no file 'bin/server', seen from {tmp_path};",
        ),
        (StdioTransport(command="./bin/server"), f"there is no file './bin/server', seen from {Path.cwd()};"),
        (StdioTransport(command="/no/such/server"), "there is no file '/no/such/server';"),
        (
            StdioTransport(command=str(script)),
            f"the interpreter that the first line of '{script}' names does not exist;",
        ),
        (StdioTransport(command="./x", cwd=Secret(str(tmp_path))), "there is no file './x', seen from ********;"),
    ]
    for wrong, words in cases:
        with pytest.raises(ServerFailed) as caught:
            start_process("git", wrong)
        assert words in caught.value.message


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (StdioTransport(command="cat", cwd="/no/such/folder"), "working folder /no/such/folder does not exist"),
        (StdioTransport(command="/etc/passwd"), "may not be executed"),
        (StdioTransport(command=sys.executable, args=("a\0b",)), "null byte"),
    ],
)
async def test_every_other_reason_not_to_start_has_its_own_words(wrong: StdioTransport, words: str) -> None:
    async with nothing_left_behind():
        with pytest.raises(ServerFailed, match=words):
            start_process("git", wrong)


async def test_where_the_system_has_no_room_the_way_out_is_not_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(ServerFailed, match="too many open files; close other programs, or raise the limits"):
        start_process("animal", transport())


async def test_a_secret_command_is_not_shown() -> None:
    with pytest.raises(ServerFailed) as caught:
        start_process("git", StdioTransport(command=Secret("/opt/hidden-place/server")))
    assert "hidden-place" not in str(caught.value)


@requirement("CON-5")
async def test_a_polite_server_ends_at_the_end_of_its_input() -> None:
    async with nothing_left_behind():
        child = start_process("git", transport())
        await end_process(child)
        assert child.status == ExitStatus(code=0)


async def test_a_server_may_save_its_work_before_it_goes(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    program = f"import sys,time; sys.stdin.read(); time.sleep(0.3); open({str(saved)!r}, 'w').close()"
    child = start_process("git", StdioTransport(command=sys.executable, args=("-I", "-S", "-c", program)))
    await end_process(child)
    assert saved.exists()
    assert child.status == ExitStatus(code=0)


@requirement("CON-5")
async def test_a_server_that_ignores_everything_is_killed_in_bounded_time() -> None:
    script = {"@start": [{"ignore": ["SIGTERM", "eof"]}, {"send": {"up": True}}]}
    async with nothing_left_behind():
        child = start_process("git", transport(script))
        await first_line(child)
        with anyio.fail_after(QUICK.after_stdin + QUICK.after_terminate + 5):
            await end_process(child, QUICK)
        assert child.status == ExitStatus(signal=signal.SIGKILL)
        assert str(child.status) == "signal SIGKILL"


@requirement("CON-5")
async def test_a_server_that_has_closed_its_input_is_not_waited_for_to_see_its_end() -> None:
    patient = EndingTimes(after_stdin=2 * PATIENCE, after_terminate=PATIENCE)
    script = {"@start": [{"close": 0}, {"send": {"up": True}}, {"stop_reading": 1}]}
    async with nothing_left_behind():
        child = start_process("git", transport(script))
        await first_line(child)
        with anyio.fail_after(PATIENCE):
            await end_process(child, patient)
        assert child.status == ExitStatus(signal=signal.SIGTERM)


@requirement("CON-5")
@pytest.mark.parametrize("how", [{"keep": True}, {"keep": False}, {"setsid": True}, {"ignore": ["SIGTERM"]}])
async def test_a_grandchild_does_not_outlive_a_server_that_ends_politely(how: dict[str, object]) -> None:
    async with nothing_left_behind():
        child = start_process("git", transport({"@start": [{"fork": how}]}))
        grandchild = await forked(child)
        assert alive(grandchild)
        await end_process(child, QUICK)
        assert not alive(grandchild)
        assert child.status == ExitStatus(code=0)


@requirement("CON-5")
@pytest.mark.parametrize("how", [{"keep": True, "setsid": True}, {"keep": True, "setsid": True, "ignore": ["SIGTERM"]}])
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can tell whose the orphan is")
async def test_a_grandchild_does_not_outlive_a_server_that_crashed(how: dict[str, object]) -> None:
    async with nothing_left_behind():
        child = start_process("git", transport({"@start": [{"fork": how}, {"exit": 1}]}))
        grandchild = await forked(child)
        assert await child.gone(PATIENCE)
        assert alive(grandchild)
        await end_process(child, QUICK)
        assert not alive(grandchild)


async def test_the_exit_is_known_without_asking() -> None:
    told = anyio.Event()
    child = start_process("git", transport({"@start": [{"exit": 3}]}), told.set)
    with anyio.fail_after(PATIENCE):
        await told.wait()
    assert child.status == ExitStatus(code=3)
    await end_process(child)


async def test_without_pidfd_a_thread_waits_for_the_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    child = start_process("git", transport({"@start": [{"exit": 4}]}))
    with anyio.fail_after(PATIENCE):
        await child.exited.wait()
    assert child.status == ExitStatus(code=4)
    await end_process(child)


# ---------------------------------------------------------------- the host is killed

HOST = """
import sys
sys.path.insert(0, {root!r})
import anyio, os, time
from interlock.connections.ledger import LEDGER
from interlock.connections.process import start_process
from tests.connections.servers import scripted
from tests.connections.test_process import forked
async def main():
    script = {{"@start": [{{"ignore": ["SIGTERM", "eof"]}}, {{"fork": {how!r}}}]}}
    child = start_process("git", scripted(script).transport)
    print(child.pid, await forked(child), flush=True)
    {then}
    await anyio.sleep(60)
anyio.run(main)
"""
ROOT = Path(__file__).parents[2]


def host(how: dict[str, object], then: str = "") -> "subprocess.Popen[str]":
    program = HOST.format(root=str(ROOT), how=how, then=then)
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=dict(os.environ))


async def announced(process: "subprocess.Popen[str]") -> list[int]:
    assert process.stdout is not None
    with anyio.fail_after(60):
        line = await anyio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)
    return [int(word) for word in line.split()]


@requirement("CON-5")
@pytest.mark.parametrize("how", [{"keep": True}, {"setsid": True, "ignore": ["SIGTERM"]}])
async def test_a_killed_host_leaves_neither_child_nor_grandchild(how: dict[str, object]) -> None:
    with host(how) as process:
        pids = await announced(process)
        assert len(pids) == 2
        assert all(map(alive, pids))
        process.kill()
    await until_gone(*pids)


@requirement("CON-5")
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can tell that the pipe is held by a copy only")
async def test_a_copy_of_a_killed_host_does_not_protect_its_servers(settled: bool) -> None:
    then = "settled = LEDGER._write('.\\n')" if settled else "pass"
    copied = "copy = os.fork(); copy or (time.sleep(60), os._exit(0)); print(copy, flush=True)"
    with host({"keep": True}, f"{then}; {copied}") as process:
        pids = await announced(process)
        (copy,) = await announced(process)
        try:
            if settled:
                await until_interpreter(lambda: watchdogs_of(process.pid))
            process.kill()
            await until_gone(*pids)
            assert alive(copy)
        finally:
            os.kill(copy, signal.SIGKILL)


async def test_the_watchdog_of_a_host_that_is_dead_already_waits_for_nothing() -> None:
    commands, held = os.pipe()
    os.write(held, b"-7\n+9\n.\n")
    not_the_parent = os.getpid()
    try:
        with anyio.fail_after(PATIENCE):
            watching = partial(watchdog.watch, commands, not_the_parent, ["+7", "+8"])
            assert await anyio.to_thread.run_sync(watching, abandon_on_cancel=True) == {8, 9}
    finally:
        os.close(held)
        os.close(commands)


async def test_the_watchdog_becomes_an_interpreter_and_knows_what_was_said_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "SETTLED", 0.0)
    before = children()
    child = start_process("git", transport())
    (guard,) = children() - before - {child.pid}
    await until_interpreter(lambda: [guard])
    with anyio.fail_after(PATIENCE):
        while f"+{child.pid}" not in words_of(guard):  # noqa: ASYNC110 - it tells nobody of its change
            await anyio.sleep(0.01)
    await end_process(child)


async def test_where_there_is_no_shell_the_watchdog_is_an_interpreter_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_shell(command: list[str], **options: object) -> "subprocess.Popen[bytes]":
        if command[0] == "/bin/sh":
            raise FileNotFoundError(command[0])
        return started(command, **options)

    started: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", without_shell)
    before = children()
    child = start_process("git", transport())
    assert [is_interpreter(pid) for pid in children() - before - {child.pid}] == [True]
    await end_process(child)


def is_interpreter(pid: int) -> bool:
    return os.path.samefile(f"/proc/{pid}/exe", sys.executable)


def words_of(pid: int) -> list[str]:
    """The command line of a process; empty in the middle of its change."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


async def until_interpreter(watchdogs: Callable[[], list[int]]) -> None:
    with anyio.fail_after(PATIENCE):
        while not any(map(is_interpreter, watchdogs())):  # noqa: ASYNC110 - it tells nobody of its change
            await anyio.sleep(0.01)


@requirement("CON-5")
async def test_what_a_host_left_that_died_with_its_watchdog_is_ended_at_the_next_start(home: Path) -> None:
    # The host kills its own watchdog first, as the end of a whole control group would.
    with host({"keep": True}, "LEDGER._watchdog.kill()") as process:
        pids = await announced(process)
        await until_gone(*watchdogs_of(process.pid))
        process.kill()
    assert all(map(alive, pids))
    ledger.sweep(home / "processes")
    await until_gone(*pids)
    assert list((home / "processes").iterdir()) == []


def watchdogs_of(pid: int) -> list[int]:
    """Processes of the host whose command line is the watchdog's."""
    mine = [child for child, row in watchdog.processes().items() if row[0] == pid]
    return [child for child in mine if "watchdog" in " ".join(words_of(child))]


def test_a_number_used_again_is_never_killed(home: Path) -> None:
    folder = home / "processes"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "30"], start_new_session=True) as stranger:
        started, namespace, boot = watchdog.start_time(stranger.pid), ledger.namespace(), ledger.boot_id()
        for name in (
            f"{namespace}-{stranger.pid}-1-999999999-1-{boot}",  # an earlier process had the number
            f"{namespace}-{stranger.pid}-{started}-999999999-1-another-boot",
            f"{namespace}-not-one-of-ours",
        ):
            (folder / name).touch()
        (folder / f"7{namespace}-{stranger.pid}-{started}-999999999-1-{boot}").touch()  # of another container
        ledger.sweep(folder)
        assert [path.name[0] for path in folder.iterdir()] == ["7"]
        with pytest.raises(subprocess.TimeoutExpired):
            stranger.wait(0.3)  # a kill would show within it
        stranger.kill()


async def test_a_living_hosts_servers_are_left_alone(home: Path) -> None:
    child = start_process("git", transport())
    ledger.sweep(home / "processes")
    assert [path.name for path in (home / "processes").iterdir()] == [ledger.Entry.of(child.pid).name]
    assert alive(child.pid)
    await end_process(child)
    assert list((home / "processes").iterdir()) == []


async def test_a_home_that_cannot_be_written_costs_only_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_HOME", "/proc/no/home")
    async with nothing_left_behind():
        child = start_process("git", transport())
        await end_process(child)


async def test_one_watchdog_serves_all_servers_and_goes_with_the_last() -> None:
    before = children()
    one, two = start_process("one", transport()), start_process("two", transport())
    assert len(children() - before) == 3
    await end_process(one)
    assert len(children() - before) == 2
    await end_process(two)
    assert children() == before


def test_the_table_of_ps_reads_like_that_of_proc() -> None:
    first, second = "Mon Nov 30 10:00:00 2026", "Mon Nov 30 10:00:01 2026"
    text = f"  10     1    10 Ss   {first}\n  11    10    10 S    {second}\n  12  10 10 Z {second}\n"
    table = watchdog.parse_ps(text)
    assert table[11] == (10, 10, "Mon Nov 30 10:00:01 2026")
    assert {pid for pid, _ in watchdog.family(10, table)} == {10, 11}
