"""Commands that cannot be started, and the words that lead out of it."""

import shutil
import sys
from pathlib import Path

import pytest

from interlock.surfaces.cli.doctor.command_check import examine
from interlock.surfaces.cli.doctor.finding import Finding
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import ServerConfig, StdioTransport


def findings(command: str, *args: str, path: str | None = None, cwd: Path | None = None) -> list[Finding]:
    env = {} if path is None else {"PATH": Secret(path)}
    transport = StdioTransport(command=command, args=args, env=env, cwd=None if cwd is None else str(cwd))
    return list(examine(ServerConfig(name="x", transport=transport), transport))


def executable(file: Path, text: str = "#!/bin/sh\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_a_good_command_has_no_finding(tmp_path: Path) -> None:
    executable(tmp_path / "tool")
    assert findings(sys.executable, "-c", "pass") == []
    assert findings("tool", path=str(tmp_path)) == []
    assert findings("./tool", cwd=tmp_path) == []


def test_an_absent_command_names_the_path_that_was_searched(tmp_path: Path) -> None:
    (found,) = findings("nosuch", path=f"{tmp_path}:/nowhere")
    assert (found.level, found.kind) == ("error", "command_not_found")
    assert found.message == f"command not found: 'nosuch'; searched PATH {tmp_path}:/nowhere"
    assert found.fix is not None


def test_a_command_in_a_usual_folder_is_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("interlock.surfaces.cli.doctor.command_check.USUAL_FOLDERS", ())
    executable(tmp_path / ".nvm/versions/node/v24.1.0/bin/npx")
    (found,) = findings("npx", path="/nowhere")
    assert f'env = {{ PATH = "{tmp_path}/.nvm/versions/node/v24.1.0/bin:/nowhere" }}' in (found.fix or "")


@pytest.mark.parametrize(
    ("command", "kind", "fix"),
    [
        ("sh -c x", "command_not_found", 'command = "sh", args = ["-c", "x"]'),
        ("sh -c 'echo hi'", "command_not_found", 'command = "sh", args = ["-c", "echo hi"]'),
        ("sh -c 'x", "command_not_found", """command = "sh", args = ["-c", "'x"]"""),
        ("~/bin/x", "command_not_found", "no shell expands ~"),
        ("./absent", "command_not_found", "a relative one is looked for in `cwd`"),
        ("nvm", "command_not_found", 'command = "bash", args = ["-lc", "nvm ...'),
        ("uvx", "command_not_found", "install uv"),
    ],
)
def test_common_mistakes_have_a_fix_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, kind: str, fix: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("interlock.surfaces.cli.doctor.command_check.USUAL_FOLDERS", ())
    path = str(executable(tmp_path / "bin" / "sh").parent)
    (found,) = findings(command, path=path)
    assert (found.level, found.kind) == ("error", kind)
    assert fix in (found.fix or "")


def test_a_folder_is_no_program_and_not_called_absent(tmp_path: Path) -> None:
    (found,) = findings(str(tmp_path), path="/nowhere")
    assert (found.level, found.message) == ("error", f"{tmp_path} is a folder")
    assert found.fix is not None


def test_a_script_that_only_a_shell_can_start_says_so(tmp_path: Path) -> None:
    file = executable(tmp_path / "shim", 'exec node "$@"\n')
    (found,) = findings(str(file))
    assert (found.level, found.kind) == ("error", "needs_shell")
    assert f'command = "sh", args = ["{file}"' in (found.fix or "")


def test_a_script_names_the_interpreter_that_its_path_lacks(tmp_path: Path) -> None:
    file = executable(tmp_path / "npx", "#!/usr/bin/env -S node --flag\n")
    (found,) = findings(str(file), path="/nowhere")
    assert (found.kind, found.message) == (
        "interpreter_not_found",
        f"{file} is a script for node, which its PATH does not have: /nowhere",
    )
    executable(tmp_path / "node")
    assert findings(str(file), path=str(tmp_path)) == []
    gone = executable(tmp_path / "gone", "#!/no/such/python3\n")
    assert "which does not exist" in findings(str(gone))[0].message


def test_a_script_with_line_ends_of_windows_says_so(tmp_path: Path) -> None:
    script = executable(tmp_path / "serve")
    script.write_bytes(b"#!/bin/sh\r\nexit 0\r\n")
    (found,) = findings(str(script))
    assert (found.level, found.kind) == ("error", "line_ends")
    assert found.fix == f"run: sed -i 's/\\r$//' {script}"


def test_a_file_that_may_not_be_executed_names_the_command_that_lets_it(tmp_path: Path) -> None:
    file = executable(tmp_path / "a tool")
    file.chmod(0o644)
    (found,) = findings(str(file))
    assert (found.kind, found.fix) == ("not_executable", f"run: chmod +x '{file}'")


def test_a_shim_of_a_version_manager_is_a_note(tmp_path: Path) -> None:
    file = executable(tmp_path / ".pyenv" / "shims" / "tool")
    (found,) = findings("tool", path=str(file.parent))
    assert (found.level, found.kind) == ("note", "shim")
    assert "`pyenv which tool`" in (found.fix or "")


@pytest.mark.parametrize("argument", ["&&", "~/x", "$HOME/x", "${X}", "$(pwd)", "`pwd`", "2>&1"])
def test_words_that_only_a_shell_understands_are_pointed_out(argument: str) -> None:
    (found,) = findings(sys.executable, "x", argument)
    assert (found.level, found.kind) == ("warning", "shell_syntax")
    assert found.message.startswith("`args[1]`")
    assert findings(shutil.which("sh") or "sh", "-c", argument) == []


def test_an_absent_folder_is_an_error_of_its_own(tmp_path: Path) -> None:
    (found,) = findings("x", cwd=tmp_path / "absent")
    assert (found.kind, found.level) == ("no_folder", "error")
