import json
from pathlib import Path

import pytest

from tests.surfaces.cli.shell import BROKEN, EXITS, OFF, SCRIPT, SILENT, Shell, scripted


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A folder with one good server."""
    shell = Shell(tmp_path)
    script = shell.write("script.json", json.dumps(SCRIPT))
    shell.configure(scripted("good", script, 'disabled_tools = ["hidden"]'))
    return shell


@pytest.fixture
def mixed(tmp_path: Path) -> Shell:
    """A folder with a good server among bad ones."""
    shell = Shell(tmp_path)
    script = shell.write("script.json", json.dumps(SCRIPT))
    shell.configure(scripted("good", script), EXITS, SILENT, BROKEN, OFF)
    return shell
