"""A scripted MCP server as a table of a configuration.

Owns: `scripted_server`, which writes a script to a file and says how to start it; what such a server is passed on.
Never: starts it; a Host does.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import ServerConfig, StdioTransport


def scripted_server(name: str, script: JsonObject, directory: Path, **settings: Any) -> ServerConfig:
    """The configuration of a stdio server that plays `script` (see `interlock.testing.server`).

    The script is written to `directory / "NAME.json"`. `settings` are further fields of
    ServerConfig, such as `required=True`.
    """
    file = directory / f"{name}.json"
    file.write_text(json.dumps(script), encoding="utf-8")
    transport = StdioTransport(
        command=sys.executable, args=("-m", "interlock.testing.server", str(file)), env=passed_on()
    )
    return ServerConfig(name=name, transport=transport, **settings)


def passed_on() -> dict[str, Secret]:
    """The variable by which a server in Python finds the same packages as we do, if it is set here."""
    value = os.environ.get("PYTHONPATH")
    return {} if value is None else {"PYTHONPATH": Secret(value, "environment variable PYTHONPATH")}
