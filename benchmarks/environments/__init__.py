"""The environments of the peers, apart from ours: .cache/bench/NAME.

Owns: making them from the lists beside this file, and telling what is in them.
Never: touches the environment that Interlock runs in.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "bench"
HERE = "here"
"""The environment of the running Python, in which Interlock is installed."""

VERSIONS = """
import importlib.metadata, json, platform, sys
found = {name: importlib.metadata.version(name) for name in sys.argv[1:]}
print(json.dumps(found | {"python": platform.python_version()}))
"""


def python_of(environment: str) -> str:
    """The interpreter of an environment, which is made first if need be."""
    if environment == HERE:
        return sys.executable
    folder, wanted = CACHE / environment, _list(environment).read_text()
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment {environment} of the peers", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", _list(environment)]
        subprocess.run([python, *install], check=True)
        stamp.write_text(wanted)
    return str(python)


def versions(environment: str, packages: tuple[str, ...]) -> dict[str, str]:
    """The versions of `packages` and of Python in an environment."""
    command = [python_of(environment), "-c", VERSIONS, *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _list(environment: str) -> Path:
    return Path(__file__).with_name(f"{environment}.txt")
