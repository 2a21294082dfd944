"""The host between an AI agent and its MCP servers.

    import interlock

    async with interlock.Host.open("interlock.toml") as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            result = await step.call("call-1", "mcp__git__git_status", {"repo_path": "."})

The names below are the public face; they are loaded when first used, so that importing this
package costs next to nothing. `interlock.models` makes language models, `interlock.testing` holds
scripted ones.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock import models as models
    from interlock.host.host import Host as Host
    from interlock.threads.step import CallResult as CallResult
    from interlock.threads.step import Step as Step
    from interlock.threads.thread import Thread as Thread
    from interlock.threads.turn import Turn as Turn
    from interlock.threads.turn import TurnResult as TurnResult
    from interlock.vocabulary.errors import InterlockError as InterlockError
    from interlock.vocabulary.errors import InvalidRequest as InvalidRequest
    from interlock.vocabulary.errors import ModelFailed as ModelFailed
    from interlock.vocabulary.errors import NotPermitted as NotPermitted
    from interlock.vocabulary.errors import ServerFailed as ServerFailed
    from interlock.vocabulary.errors import StorageFailed as StorageFailed
    from interlock.vocabulary.policy import Policy as Policy
    from interlock.vocabulary.question import Accept as Accept
    from interlock.vocabulary.question import Cancel as Cancel
    from interlock.vocabulary.question import Decline as Decline
    from interlock.vocabulary.server import HttpTransport as HttpTransport
    from interlock.vocabulary.server import ServerConfig as ServerConfig
    from interlock.vocabulary.server import StdioTransport as StdioTransport

_HOMES = {
    "Host": "host.host",
    "Thread": "threads.thread",
    "Step": "threads.step",
    "CallResult": "threads.step",
    "Turn": "threads.turn",
    "TurnResult": "threads.turn",
    "ServerConfig": "vocabulary.server",
    "StdioTransport": "vocabulary.server",
    "HttpTransport": "vocabulary.server",
    "Policy": "vocabulary.policy",
    "Accept": "vocabulary.question",
    "Decline": "vocabulary.question",
    "Cancel": "vocabulary.question",
    "InterlockError": "vocabulary.errors",
    "InvalidRequest": "vocabulary.errors",
    "NotPermitted": "vocabulary.errors",
    "ServerFailed": "vocabulary.errors",
    "ModelFailed": "vocabulary.errors",
    "StorageFailed": "vocabulary.errors",
}

__all__ = [*sorted(_HOMES), "models"]  # noqa: PLE0604 -- one table of names, not two that could differ


def __getattr__(name: str) -> Any:
    if name == "models":
        return import_module("interlock.models")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'interlock' has no attribute {name!r}")
    value = getattr(import_module(f"interlock.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
