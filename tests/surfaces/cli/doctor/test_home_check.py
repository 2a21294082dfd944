"""Permissions of the home folder, and servers whose host is gone."""

import subprocess
from pathlib import Path

import pytest

from interlock.configuration import load
from interlock.connections.ledger import Entry
from interlock.surfaces.cli.doctor.finding import Finding
from interlock.surfaces.cli.doctor.home_check import examine_home

SECRET = '[mcp_servers.a]\ncommand = "x"\nenv = { KEY = "abcdef" }\n'
REFERENCE = '[mcp_servers.a]\ncommand = "x"\nenv = { KEY = { env = "KEY" } }\n'


def kinds(home: Path) -> dict[str, str]:
    configuration = load(home=home, environment={"KEY": "abcdef"})
    return {finding.kind: finding.level for finding in examine_home(home, configuration)}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERLOCK_HOME", str(tmp_path))
    tmp_path.chmod(0o700)
    return tmp_path


def write(file: Path, text: str, mode: int) -> None:
    file.write_text(text)
    file.chmod(mode)


def test_a_home_for_its_owner_only_is_fine(home: Path) -> None:
    write(home / "config.toml", SECRET, 0o600)
    write(home / "interlock.db", "", 0o600)
    assert kinds(home) == {"home": "ok"}


@pytest.mark.parametrize(
    ("place", "found"),
    [("new", {"no_home": "note"}), ("file/new", {"not_writable": "error"}), ("file", {"no_folder": "error"})],
)
def test_a_home_that_cannot_be_made_is_an_error(tmp_path: Path, place: str, found: dict[str, str]) -> None:
    (tmp_path / "file").touch()
    assert kinds(tmp_path / place) == found


@pytest.mark.parametrize(
    ("mode", "found"),
    [(0o755, {"others_read": "warning"}), (0o777, {"others_write": "error"}), (0o700, {"home": "ok"})],
)
def test_a_folder_that_others_use_is_found(home: Path, mode: int, found: dict[str, str]) -> None:
    home.chmod(mode)
    assert kinds(home) == found


@pytest.mark.parametrize(
    ("text", "mode", "found"),
    [
        (SECRET, 0o644, {"others_read": "warning"}),
        (REFERENCE, 0o644, {}),
        (REFERENCE, 0o666, {"others_write": "error"}),
    ],
)
def test_a_configuration_that_others_use_is_found(home: Path, text: str, mode: int, found: dict[str, str]) -> None:
    write(home / "config.toml", text, mode)
    assert kinds(home) == {"home": "ok"} | found


def test_a_store_that_others_read_is_found(home: Path) -> None:
    write(home / "interlock.db", "", 0o644)
    assert kinds(home) == {"home": "ok", "others_read": "warning"}


def test_a_server_of_a_killed_host_is_found_and_not_ended(home: Path) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as orphan:
        try:
            entry = Entry.of(orphan.pid)
            (home / "processes").mkdir()
            name = Entry(pid=entry.pid, started=entry.started, host=entry.host, host_started="1").name
            (home / "processes" / name).touch()
            (found,) = [f for f in examine_home(home, load(home=home)) if f.kind == "stale_process"]
            assert isinstance(found, Finding)
            assert found.fix == f"start any server, which ends it too, or run: kill {orphan.pid}"
            assert orphan.poll() is None
        finally:
            orphan.kill()
    assert "stale_process" not in kinds(home)


def test_a_home_that_does_not_exist_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_HOME", str(tmp_path / "absent"))
    assert kinds(tmp_path / "absent") == {"no_home": "note"}
