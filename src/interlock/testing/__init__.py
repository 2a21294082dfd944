"""What tests of agents need: a scripted model, a scripted model endpoint, a scripted MCP server, and gates for races.

    from interlock.testing import Call, Say, ScriptedModel

    model = ScriptedModel(Call("mcp__git__git_status", {"repo_path": "."}), Say("nothing has changed"))

Names are loaded when they are first used, so that `python -m interlock.testing.server` starts quickly.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.testing.endpoint import RecordedRequest, ScriptedEndpoint
    from interlock.testing.gates import Gate, Sequencer
    from interlock.testing.model import ScriptedModel
    from interlock.testing.script import Break, Call, Fail, Give, Raw, Refuse, Say, Wait
    from interlock.testing.stdio import scripted_server

_HOMES = {
    "Break": "script",
    "Call": "script",
    "Fail": "script",
    "Gate": "gates",
    "Give": "script",
    "Raw": "script",
    "RecordedRequest": "endpoint",
    "Refuse": "script",
    "Say": "script",
    "ScriptedEndpoint": "endpoint",
    "ScriptedModel": "model",
    "Sequencer": "gates",
    "Wait": "script",
    "scripted_server": "stdio",
}

__all__ = [
    "Break",
    "Call",
    "Fail",
    "Gate",
    "Give",
    "Raw",
    "RecordedRequest",
    "Refuse",
    "Say",
    "ScriptedEndpoint",
    "ScriptedModel",
    "Sequencer",
    "Wait",
    "scripted_server",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
