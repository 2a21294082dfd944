"""The wire as JSON Schema.

Owns: `interlock app-server schema`, made from the types of the table.
Never: is written by hand.
"""

from typing import Any

from pydantic import TypeAdapter

from interlock.surfaces.rpc.notifications import NOTIFICATIONS, SERVER_REQUESTS
from interlock.surfaces.rpc.table import METHODS


def document() -> dict[str, Any]:
    """Every method with its parameters and result, every notification, every request to the client."""
    return {
        "methods": {
            name: {
                "description": method.says,
                "params": method.params.model_json_schema(),
                "result": schema_of(method.result),
            }
            for name, method in METHODS.items()
        },
        "notifications": {
            name: {"description": says, "params": schema_of(shape)} for name, (shape, says) in NOTIFICATIONS.items()
        },
        "serverRequests": {
            name: {"description": says, "params": schema_of(params), "result": schema_of(result)}
            for name, (params, result, says) in SERVER_REQUESTS.items()
        },
    }


def schema_of(shape: Any) -> dict[str, Any]:
    return TypeAdapter(shape).json_schema(mode="serialization")
