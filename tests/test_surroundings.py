"""What the tests start is the same `interlock` as the tests import, wherever they found it."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import interlock
from interlock.configuration.load import load
from interlock.connections.process import child_environment
from interlock.demo.servers import configured
from interlock.testing import scripted_server
from interlock.vocabulary.server import StdioTransport
from tests.demo.test_demo import environment
from tests.examples.test_guides import reader
from tests.surfaces.cli.shell import Shell
from tests.surfaces.cli.shell import scripted as shells
from tests.surfaces.rpc.programs import Home, configuration
from tests.surroundings import surroundings

CODE = "import interlock; print(interlock.__file__)"


def imported(variables: Mapping[str, str], folder: Path) -> str:
    """Which `interlock` a child imports that is not shown (-S) the packages installed for its interpreter."""
    command = [sys.executable, "-S", "-c", CODE]
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr


def of_server(transport: object) -> Mapping[str, str]:
    assert isinstance(transport, StdioTransport)
    return child_environment(transport)


def of_app_servers_server(folder: Path) -> Mapping[str, str]:
    configuration(folder, "http://127.0.0.1:1")
    return of_server(load(folder / "config.toml").servers["s"].transport)


def of_shells_server(folder: Path) -> Mapping[str, str]:
    (folder / "shell.toml").write_text(shells("good", folder))
    return of_server(load(folder / "shell.toml").servers["good"].transport)


CHILDREN: dict[str, Callable[[Path], Mapping[str, str]]] = {
    "whose environment is ours": lambda folder: os.environ,
    "with next to none": lambda folder: surroundings(),
    "the command line": lambda folder: Shell(folder).environment(),
    "its server": of_shells_server,
    "the app server": lambda folder: Home(folder).environment,
    "its servers": of_app_servers_server,
    "the demonstration": environment,
    "its server in Python": lambda folder: of_server(configured("http://127.0.0.1:1")["library"].transport),
    "a guide": reader,
    "a scripted server": lambda folder: of_server(scripted_server("s", {}, folder).transport),
}


@pytest.mark.parametrize("variables", CHILDREN.values(), ids=CHILDREN)
def test_a_child_imports_the_interlock_of_the_tests(
    variables: Callable[[Path], Mapping[str, str]], tmp_path: Path
) -> None:
    assert imported(variables(tmp_path), tmp_path) == interlock.__file__
