"""The stored shape of a question.

Owns: how forms, links, approvals and the requests of ours that were answered with them are written and read back.
Never: holds an answer; `codec` decides what is stored of those.
"""

from typing import Final

from interlock.stores.shapes import BOOLEAN, OBJECT, TEXT, Many, OneOf, Plain, Record, Union
from interlock.vocabulary import form, question
from interlock.vocabulary.tool import ToolAnnotations

NUMBER: Final = Plain("a number", (int, float))
LABELS: Final = {"name": TEXT, "title": TEXT, "description": TEXT, "required": BOOLEAN}
CHOICE: Final = Record(form.Choice, {"value": TEXT, "title": TEXT})
FIELD: Final = Union(
    {
        form.TextField: (
            "text",
            Record(
                form.TextField,
                {
                    **LABELS,
                    "min_length": NUMBER,
                    "max_length": NUMBER,
                    "format": OneOf(("email", "uri", "date", "date-time")),
                    "default": TEXT,
                },
            ),
        ),
        form.NumberField: (
            "number",
            Record(
                form.NumberField,
                {**LABELS, "integer": BOOLEAN, "minimum": NUMBER, "maximum": NUMBER, "default": NUMBER},
            ),
        ),
        form.BooleanField: ("boolean", Record(form.BooleanField, {**LABELS, "default": BOOLEAN})),
        form.SelectField: (
            "select",
            Record(form.SelectField, {**LABELS, "choices": Many(CHOICE), "legacy_titles": BOOLEAN, "default": TEXT}),
        ),
        form.MultiSelectField: (
            "multi_select",
            Record(
                form.MultiSelectField,
                {
                    **LABELS,
                    "choices": Many(CHOICE),
                    "min_items": NUMBER,
                    "max_items": NUMBER,
                    "default": Many(TEXT),
                },
            ),
        ),
    }
)
ANNOTATIONS: Final = Record(
    ToolAnnotations,
    {
        "title": TEXT,
        "read_only_hint": BOOLEAN,
        "destructive_hint": BOOLEAN,
        "idempotent_hint": BOOLEAN,
        "open_world_hint": BOOLEAN,
    },
)
SUBJECT: Final = Union(
    {
        form.Form: ("form", Record(form.Form, {"fields": Many(FIELD), "undeclared": Many(TEXT)})),
        question.Link: (
            "link",
            Record(question.Link, {"url": TEXT, "host": TEXT, "warnings": Many(TEXT), "elicitation_id": TEXT}),
        ),
        question.Approval: (
            "approval",
            Record(
                question.Approval,
                {
                    "tool": TEXT,
                    "public_name": TEXT,
                    "arguments": OBJECT,
                    "annotations": ANNOTATIONS,
                    "title": TEXT,
                    "description": TEXT,
                    "connector_id": TEXT,
                    "connector_name": TEXT,
                    "persist": Many(OneOf(("once", "session", "always"))),
                    "reason": TEXT,
                },
            ),
        ),
    }
)
QUESTION: Final = Record(
    question.Question,
    {
        "id": TEXT,
        "server": TEXT,
        "message": TEXT,
        "subject": SUBJECT,
        "turn_id": TEXT,
        "call_id": TEXT,
        "certainty": OneOf(("known", "only_call", "unknown")),
        "meta": OBJECT,
    },
)
HELD_REQUEST: Final = Record(
    question.HeldRequest,
    {"server": TEXT, "whereabouts": TEXT, "method": TEXT, "params": OBJECT, "keys": Many(TEXT), "state": TEXT},
)
