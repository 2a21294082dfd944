"""Whether a tool's structured result is what its server promised.

Owns: the validators of output schemas, made when first needed.
Never: takes a result away (specification: tools; the result is kept and the breach is told), or fetches a schema.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NoReturn

from interlock.connections.schema_cost import SchemaCost
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.slices import Sliced
from interlock.vocabulary.tool import Tool, ToolResult

if TYPE_CHECKING:
    import jsonschema_rs

LONGEST_REASON: Final = 300
UNUSABLE: Final = "its output schema is not valid, so results go unchecked"
TOO_COSTLY: Final = "checking this result against the output schema could take too long, so it goes unchecked"


class Outputs:
    """The tools of one listing, ready to have their results checked."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._validators: dict[str, jsonschema_rs.Validator | None] = {}
        self._costs: dict[str, SchemaCost] = {}

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def checking(self, name: str, result: ToolResult) -> Sliced[str | None]:
        """Why `result` is not what the tool `name` promised; None if it is, or if nothing was promised. In slices, but
        for the check itself, which native code does in one piece: MOST_STEPS of `schema_cost` bound it."""
        tool = self._tools.get(name)
        if tool is None or tool.output_schema is None or result.is_error:
            return None
        validator = self._validator(name, tool.output_schema)
        if validator is None:
            return UNUSABLE
        if result.structured_content is None:
            return "structuredContent is missing, though the tool has an output schema"
        if not (yield from self._costs[name].affordable(result.structured_content)):
            return TOO_COSTLY
        try:
            error = next(iter(validator.iter_errors(result.structured_content)), None)
        except ValueError as unresolved:
            return str(unresolved)[:LONGEST_REASON]
        return None if error is None else str(error.message)[:LONGEST_REASON]

    def _validator(self, name: str, schema: JsonObject) -> "jsonschema_rs.Validator | None":
        import jsonschema_rs  # most servers have no output schemas

        if name not in self._validators:
            try:
                self._validators[name] = jsonschema_rs.validator_for(dict(schema), retriever=_refuse)
            except ValueError:
                self._validators[name] = None
            self._costs[name] = SchemaCost(schema)
        return self._validators[name]


def _refuse(uri: str) -> NoReturn:
    """No network for a schema (specification: basic, JSON Schema)."""
    raise ValueError(f"the schema refers to {uri[:100]}, which is not fetched")
