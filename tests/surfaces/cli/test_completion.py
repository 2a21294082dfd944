"""What shells are told when somebody presses the tab key."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shellingham  # type: ignore[import-untyped]  # it ships no types
import typer

from interlock.surfaces.cli import completing
from tests.surfaces.cli.shell import COMMAND, EXITS, OFF, Shell

KEYRING = '[mcp_servers.locked]\ncommand = "x"\nenv = { A = { keyring = "s/n" } }\n'


@pytest.fixture
def here(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.configure(EXITS, OFF, KEYRING)
    return shell


def bash(shell: Shell, *words: str) -> list[str]:
    """What bash gets for the last of these words."""
    line = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), "_INTERLOCK_COMPLETE": "complete_bash"}
    done = shell.run(**line)
    assert (done.status, done.errors) == (0, "")
    return done.output.split()


def test_commands_and_servers_are_completed(here: Shell) -> None:
    assert bash(here, "interlock", "mc") == ["mcp"]
    assert bash(here, "interlock", "mcp", "en") == ["enable"]
    assert bash(here, "interlock", "mcp", "get", "") == ["exits", "locked", "off"]
    assert bash(here, "interlock", "doctor", "e") == ["exits"]
    assert "--output-schema" in bash(here, "interlock", "exec", "--o")


def test_zsh_and_fish_are_told_the_help_too(here: Shell) -> None:
    zsh = here.run(_TYPER_COMPLETE_ARGS="interlock mcp en", _INTERLOCK_COMPLETE="complete_zsh")
    assert '"enable":"Let a server be used again."' in zsh.output
    fish = here.run(
        _TYPER_COMPLETE_ARGS="interlock mcp get ex",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _INTERLOCK_COMPLETE="complete_fish",
    )
    assert fish.output.split() == ["exits"]


def test_a_malformed_configuration_completes_nothing_and_says_nothing(here: Shell) -> None:
    here.configure("[")
    assert bash(here, "interlock", "mcp", "get", "") == []


def no_shell() -> None:
    raise shellingham.ShellDetectionFailure


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o default"), ("zsh", "#compdef interlock"), ("fish", "complete --command")]
)
def test_the_script_of_the_shell_that_runs_us_is_shown(monkeypatch: pytest.MonkeyPatch, shell: str, word: str) -> None:
    monkeypatch.setattr(shellingham, "detect_shell", lambda: (shell, f"/bin/{shell}"))
    assert word in completing.script()
    assert "_INTERLOCK_COMPLETE" in completing.script()
    monkeypatch.setattr(shellingham, "detect_shell", no_shell)
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    assert word in completing.script()


def test_a_shell_that_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("tcsh", "/bin/tcsh"))
    with pytest.raises(typer.BadParameter, match="completion is there for bash, zsh, fish, but this is tcsh"):
        completing.script()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_in_bash_the_installed_completion_works(here: Shell) -> None:
    command = shlex.join([*COMMAND, "--install-completion"])
    environment = here.environment(HOME=str(here.folder))
    subprocess.run(["bash", "-c", f"{command}; true"], env=environment, cwd=here.folder, check=True)
    script = here.folder / ".bash_completions" / "interlock.sh"
    assert str(script) in (here.folder / ".bashrc").read_text()
    folder = here.folder / "bin"
    folder.mkdir()
    link = folder / "interlock"
    link.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m interlock "$@"\n')
    link.chmod(0o755)
    words = "COMP_WORDS=(interlock mcp get e); COMP_CWORD=3"
    program = f'source "{script}"; {words}; _interlock_completion interlock; echo "${{COMPREPLY[@]}}"'
    environment = here.environment() | {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", program], env=environment, cwd=here.folder, capture_output=True, text=True)
    assert done.stdout.split() == ["exits"]
