"""A question as clients are asked it, and their answers as the library takes them.

Owns: both translations; an approval is a form without fields whose `_meta` says what would be run.
Never: takes an answer that cannot be read for a yes (RPC-5), or lets a server's own question look like an approval.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, assert_never

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.surfaces.rpc.peer import WireError
from interlock.vocabulary.form import (
    BooleanField,
    Choice,
    Form,
    MultiSelectField,
    NumberField,
    SelectField,
    TextField,
)
from interlock.vocabulary.form import Field as FormField
from interlock.vocabulary.json import JsonObject, JsonValue, compact
from interlock.vocabulary.question import Accept, Answer, Approval, Cancel, Decline, Link, Question, Remember

METHOD: Final = "mcpServer/elicitation/request"
APPROVAL_KIND: Final = "codex_approval_kind"
TOOL_CALL: Final = "mcp_tool_call"
SHOWN_LIMIT: Final = 2000
"""Characters of one argument as it is shown; the whole of it is in `tool_params`."""


# ---- out


def request_params(thread_id: str, question: Question) -> dict[str, Any]:
    """The params of `mcpServer/elicitation/request`."""
    about = {
        "threadId": thread_id,
        "turnId": question.turn_id,
        "serverName": question.server,
        "message": question.message,
    }
    match question.subject:
        case Form() as form:
            meta = _servers_meta(question.meta)
            return {**about, "mode": "form", "_meta": meta, "requestedSchema": form_schema(form)}
        case Link() as link:
            address = {"url": link.url, "elicitationId": link.elicitation_id or question.id}
            return {**about, "mode": "url", "_meta": _servers_meta(question.meta), **address}
        case Approval() as approval:
            nothing = {"type": "object", "properties": {}}
            return {**about, "mode": "form", "_meta": approval_meta(approval), "requestedSchema": nothing}
        case _:
            assert_never(question.subject)


def _servers_meta(meta: JsonObject | None) -> JsonObject | None:
    """Untouched, but for the one member that would make a server's question look like an approval of the host."""
    if meta is None or meta.get(APPROVAL_KIND) != TOOL_CALL:
        return meta
    return {name: value for name, value in meta.items() if name != APPROVAL_KIND}


def approval_meta(approval: Approval) -> dict[str, Any]:
    members = {
        APPROVAL_KIND: TOOL_CALL,
        "persist": _persist(approval.persist),
        "connector_id": approval.connector_id,
        "connector_name": approval.connector_name,
        "tool_title": approval.title,
        "tool_description": approval.description,
        "tool_params": dict(approval.arguments),
        "tool_params_display": [
            {"name": name, "value": _shown(value), "display_name": name} for name, value in approval.arguments.items()
        ],
    }
    return {name: value for name, value in members.items() if value is not None}


def _persist(offered: tuple[Remember, ...]) -> list[str] | str | None:
    match offered:
        case ():
            return None
        case (only,):
            return only
        case _:
            return list(offered)


def _shown(value: JsonValue) -> JsonValue:
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= SHOWN_LIMIT else text[: SHOWN_LIMIT - 1] + "…"


def form_schema(form: Form) -> dict[str, Any]:
    """The restricted JSON Schema of a form, as servers write it."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: field_schema(field) for field in form.fields},
    }
    required = [field.name for field in form.fields if field.required] + list(form.undeclared)
    if required:
        schema["required"] = required
    return schema


def field_schema(field: FormField) -> dict[str, Any]:
    members = {**_kind(field), "title": field.title, "description": field.description, "default": _default(field)}
    return {name: value for name, value in members.items() if value is not None}


def _kind(field: FormField) -> dict[str, Any]:
    match field:
        case TextField():
            lengths = {"minLength": field.min_length, "maxLength": field.max_length}
            return {"type": "string", "format": field.format, **lengths}
        case NumberField():
            kind = "integer" if field.integer else "number"
            bounds = {"minimum": _number(field, field.minimum), "maximum": _number(field, field.maximum)}
            return {"type": kind, **bounds}
        case BooleanField():
            return {"type": "boolean"}
        case SelectField():
            return {"type": "string", **_choices(field.choices, "oneOf", legacy=field.legacy_titles)}
        case MultiSelectField():
            items = _choices(field.choices, "anyOf", legacy=False)
            items = items if "anyOf" in items else {"type": "string", **items}
            return {"type": "array", "items": items, "minItems": field.min_items, "maxItems": field.max_items}
        case _:
            assert_never(field)


def _choices(choices: tuple[Choice, ...], titled: str, *, legacy: bool) -> dict[str, Any]:
    values = [choice.value for choice in choices]
    if all(choice.title is None for choice in choices):
        return {"enum": values}
    if legacy:
        return {"enum": values, "enumNames": [choice.label for choice in choices]}
    return {titled: [{"const": choice.value, "title": choice.label} for choice in choices]}


def _default(field: FormField) -> JsonValue:
    match field:
        case NumberField():
            return _number(field, field.default)
        case MultiSelectField():
            return None if field.default is None else list(field.default)
        case _:
            return field.default


def _number(field: NumberField, value: float | None) -> float | int | None:
    """Whole numbers of an integer are written as such."""
    return int(value) if value is not None and field.integer and value == int(value) else value


# ---- in


class _AnswerResult(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


def answer_of(question: Question, result: JsonValue, error: WireError | None) -> Answer:
    """What the client's answer means. What is no answer is a decline."""
    if error is not None:
        return Decline(error.message[:SHOWN_LIMIT] or None)
    try:
        answer = _AnswerResult.model_validate(result)
    except ValidationError:
        return Decline("the client's answer could not be read")
    match answer.action:
        case "accept":
            return _accept(question, answer.content, answer.meta)
        case "decline":
            return Decline(meta=_for_server(question, answer.meta))
        case "cancel":
            return Cancel(meta=_for_server(question, answer.meta))
        case _:
            assert_never(answer.action)


def _accept(question: Question, content: Mapping[str, Any] | None, meta: JsonObject | None) -> Accept:
    match question.subject:
        case Form(empty=False) as form:
            return Accept(_filled(form, content or {}), meta=meta)
        case Form() | Link():
            return Accept(meta=meta)  # nothing is asked but a yes
        case Approval() as approval:
            return Accept(remember=_remember(approval, meta))
        case _:
            assert_never(question.subject)


def _filled(form: Form, content: Mapping[str, Any]) -> dict[str, Any]:
    """Without optional fields that were left empty, which some clients send as null."""
    optional = {field.name for field in form.fields if not field.required}
    return {name: value for name, value in content.items() if value is not None or name not in optional}


def _remember(approval: Approval, meta: JsonObject | None) -> Remember:
    wanted = (meta or {}).get("persist")
    for offered in approval.persist:
        if offered == wanted:
            return offered
    return "once"


def _for_server(question: Question, meta: JsonObject | None) -> JsonObject | None:
    return None if isinstance(question.subject, Approval) else meta
