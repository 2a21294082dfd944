"""`--output-schema`: the form that the last message shall have.

Owns: reading the schema, and looking whether an answer has its form.
Never: fetches what a schema refers to, or changes an answer.
"""

import json
from pathlib import Path
from typing import Any, NoReturn

from interlock.configuration.documents import read_bytes
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import JsonObject, fault


def read_schema(file: Path) -> JsonObject:
    """The JSON Schema in `file`.

    Raises:
        InvalidRequest: it cannot be read, is no JSON object, or is no schema.
    """
    try:
        schema = json.loads(read_bytes(file, "the output schema").decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise _unusable(file, f"{fault(error)} at line {error.lineno}, column {error.colno}") from None
    except (UnicodeDecodeError, RecursionError):
        raise _unusable(file, "it is no JSON") from None
    if not isinstance(schema, dict):
        raise _unusable(file, 'it must be a JSON object such as {"type": "object"}')
    _validator(schema, file)
    return schema


def why_unlike(message: str | None, schema: JsonObject) -> str | None:
    """Why the last message of a model does not have the form; None: it has."""
    try:
        answer = json.loads(message or "")
    except ValueError:
        return "it is no JSON"
    error = next(iter(_validator(dict(schema), None).iter_errors(answer)), None)
    return None if error is None else _lower(str(error.message)[:300])


def _validator(schema: dict[str, Any], file: Path | None) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except ValueError as error:
        message = str(getattr(error, "message", error)).splitlines()[0][:300]
        raise _unusable(file, f"it is no JSON Schema: {message}") from None


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"it refers to {uri[:100]}, which is not fetched")


def _unusable(file: Path | None, why: str) -> InvalidRequest:
    return InvalidRequest(f"cannot use {file} as the output schema: {why}; correct the file")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
