"""Whether messages have the shapes that clients of this wire expect.

Owns: the schemas in `schema/`, made strict: a member that they do not know is wrong.
Never: looks at values; tests do.
"""

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema_rs

FOLDER = Path(__file__).parent / "schema"
TABLE: dict[str, Any] = json.loads((FOLDER / "table.json").read_text(encoding="utf-8"))
ENVELOPE = {"jsonrpc", "id", "method", "params", "emittedAtMs"}


def strict(schema: Any) -> Any:
    """Close every object whose members are all named in one place."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    composed = {"oneOf", "anyOf", "allOf"} & closed.keys()
    if isinstance(closed.get("properties"), dict) and not composed and "type" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


@functools.cache
def validator(name: str) -> Any:
    schema = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    if name == "McpServerElicitationRequestParams":  # its parts stand beside the alternatives
        return jsonschema_rs.validator_for(schema)
    return jsonschema_rs.validator_for(strict(schema))


def problems(name: str, value: Any) -> list[str]:
    return [f"{name}: {error.instance_path}: {error.message}" for error in validator(name).iter_errors(value)]


def problems_of_result(method: str, result: Any) -> list[str]:
    return problems(TABLE["methods"][method]["result"], result)


def problems_of_news(message: dict[str, Any]) -> list[str]:
    """Of a notification, or of a request of the server."""
    method = message["method"]
    unknown = [f"{method}: unknown member {name}" for name in message.keys() - ENVELOPE]
    if "id" in message:
        return unknown + problems(TABLE["serverRequests"][method]["params"], message["params"])
    return unknown + problems(TABLE["notifications"][method], message["params"])
