"""The library's errors on the wire.

Owns: which code an error has there (RPC-4).
Never: lets a secret or a traceback out, or turns a defect of ours into a sentence about the request.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pydantic import ValidationError

from interlock.surfaces.rpc.peer import INTERNAL_ERROR, INVALID_REQUEST, WireError
from interlock.vocabulary.errors import InterlockError, InvalidRequest, ServerFailed

logger = logging.getLogger(__name__)


class Refusal(Exception):
    """The request is answered with exactly this error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = WireError(code=code, message=message, data=data)


def wire_error(error: Exception, method: str) -> WireError:
    """An invalid request is -32600; everything else that can happen is -32603 with its cause."""
    match error:
        case Refusal():
            return error.error
        case InvalidRequest():
            return WireError(code=INVALID_REQUEST, message=error.message)
        case InterlockError():
            return WireError(code=INTERNAL_ERROR, message=error.message, data=_facts(error))
        case _:
            logger.error("%s broke inside the host", method, exc_info=error)
            return WireError(code=INTERNAL_ERROR, message=f"{method} broke inside the host ({type(error).__name__})")


@contextmanager
def failing_internally() -> Iterator[None]:
    """What the library refuses inside is an internal error: the request itself was well formed (RPC-4)."""
    try:
        yield
    except InvalidRequest as error:
        raise Refusal(INTERNAL_ERROR, error.message, _facts(error)) from error


WORDS: Final = {
    "missing": "is missing",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "bool_type": "must be true or false",
}
"""By pydantic's kinds of error, whose own sentences speak of Python and of our classes."""


def malformed(error: ValidationError, method: str) -> Refusal:
    """The first thing that is wrong in the parameters, in one sentence without the values."""
    detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in detail["loc"] if not _is_tag(part))
    said = WORDS.get(detail["type"]) or detail["msg"].replace("Input should be", "must be", 1)
    about = f"`{place}` " if place else "they "
    return Refusal(INVALID_REQUEST, f"the parameters of {method} are malformed: {about}{said[:1].lower()}{said[1:]}")


def _is_tag(part: int | str) -> bool:
    """pydantic names the chosen member of a union as a step of the way."""
    return isinstance(part, str) and part.startswith("function-")


def _facts(error: InterlockError) -> dict[str, Any]:
    facts: dict[str, Any] = {"reason": error.code}
    if isinstance(error, ServerFailed):
        facts |= {"server": error.server, "kind": error.kind, "effect": error.effect}
        if error.rpc_code is not None:
            facts["serverCode"] = error.rpc_code
    return facts
