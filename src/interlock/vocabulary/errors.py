"""Every failure that the host reports, sorted by who can act on it.

Owns: the names, codes and wording rules of errors.
Never: logs, retries, or knows how an error travels (JSON-RPC, exit status, model text).

    InterlockError
      InvalidRequest   the caller must change the request
      NotPermitted     a policy or a person said no
      ServerFailed     the MCP server is away, late, or broke its contract
      ModelFailed      the language model's endpoint refused, broke off, or answered nonsense
      StorageFailed    the store could not be read or written

A message is one sentence in lower case: what could not be done, with which thing, and the way
out. It never holds a secret. Cancellation is not an error, and a tool result with is_error is a
result.
"""

from typing import Any, ClassVar, Literal

Effect = Literal["none", "done", "unknown"]
"""What a call may have changed in the world: nothing, what it was meant to, or nobody can tell."""

ServerFailure = Literal[
    "unavailable",  # not started, starting, failed, closed, or given up by the breaker
    "deadline",  # our deadline passed
    "lost",  # the connection broke while we waited
    "protocol",  # the server broke the MCP specification
    "rejected",  # the server answered with a JSON-RPC error of its own
    "authentication",  # the server wants credentials that we do not have
    "unsupported",  # the server does not offer what was asked of it
]


class InterlockError(Exception):
    """Base of all errors that the host raises on purpose."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts

    @property
    def message(self) -> str:
        return str(self.args[0])


class InvalidRequest(InterlockError):
    """The request cannot be served as it was written."""

    code = "invalid_request"


class NotPermitted(InterlockError):
    """The request is well formed, and refused."""

    code = "not_permitted"


class ServerFailed(InterlockError):
    """An MCP server could not give an answer that can be used.

    `kind` tells our own verdicts (deadline, lost, …) from an error that the server sent
    (`rejected`, with its `rpc_code` and `rpc_data`); the two never look alike.
    `effect` is "none" if the server cannot have acted, else "unknown"; an error that it sent leaves it unknown.
    """

    code = "server_failed"

    def __init__(
        self,
        message: str,
        *,
        server: str,
        kind: ServerFailure = "unavailable",
        effect: Effect = "none",
        rpc_code: int | None = None,
        rpc_data: Any = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, server=server, kind=kind, effect=effect, **facts)
        self.server = server
        self.kind: ServerFailure = kind
        self.effect: Effect = effect
        self.rpc_code = rpc_code
        self.rpc_data = rpc_data


class ModelFailed(InterlockError):
    """The language model's endpoint gave no answer that can be used."""

    code = "model_failed"


class StorageFailed(InterlockError):
    """The store could not be read or written."""

    code = "storage_failed"
