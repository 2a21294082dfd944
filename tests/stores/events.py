"""Any event that could be stored, for property tests."""

from typing import Any

from hypothesis import strategies as st

from interlock.vocabulary import conversation, event, form, item, question
from interlock.vocabulary.question import HeldRequest
from interlock.vocabulary.tool import ToolAnnotations, ToolResult

# Lone surrogates and NUL included: servers send them.
text = st.text(st.characters(exclude_categories=()), max_size=20)
words = st.none() | text
numbers = st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)
json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(text, json, max_size=3)
tokens = st.integers(0, 10**9)


def many(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(inner, max_size=3).map(tuple)


parts = st.builds(conversation.TextPart, text=text) | st.builds(
    conversation.MediaPart, kind=st.sampled_from(["image", "audio", "file"]), data=text, mime_type=text, name=words
)
entries = st.one_of(
    st.builds(conversation.UserEntry, content=many(parts)),
    st.builds(conversation.AssistantEntry, text=text),
    st.builds(conversation.CallEntry, call_id=text, name=text, arguments=text),
    st.builds(conversation.OutputEntry, call_id=text, content=many(parts), success=st.booleans()),
    st.builds(conversation.OpaqueEntry, provider=text, payload=objects),
)
effects = st.sampled_from(["none", "done", "unknown"])
usages = st.builds(
    conversation.Usage,
    input_tokens=tokens,
    cached_input_tokens=tokens,
    output_tokens=tokens,
    reasoning_output_tokens=tokens,
)
results = st.builds(
    ToolResult, content=many(objects), structured_content=json, is_error=st.booleans(), meta=st.none() | objects
)
calls = st.builds(
    item.McpToolCallItem,
    id=text,
    server=text,
    tool=text,
    public_name=text,
    arguments=json,
    status=st.sampled_from(["in_progress", "completed", "failed"]),
    connector_id=words,
    link_id=words,
    mcp_app_resource_uri=words,
    app_name=words,
    action_name=words,
    plugin_id=words,
    read_only_hint=st.none() | st.booleans(),
    result=st.none() | results,
    error=st.none() | st.builds(item.ItemError, code=text, message=text, effect=effects),
    duration=st.none() | tokens,
)
messages = st.builds(item.UserMessageItem, id=text, content=many(parts)) | st.builds(
    item.AgentMessageItem, id=text, text=text, citation=st.none() | objects, plan=st.none() | text
)
labels: dict[str, Any] = {"name": text, "title": words, "description": words, "required": st.booleans()}
amounts = st.none() | tokens | st.floats(allow_nan=False, allow_infinity=False)
choices = many(st.builds(form.Choice, value=text, title=words))
fields = st.one_of(
    st.builds(
        form.TextField,
        **labels,
        min_length=st.none() | tokens,
        max_length=st.none() | tokens,
        format=st.sampled_from([None, "email", "uri", "date", "date-time"]),
        default=words,
    ),
    st.builds(form.NumberField, **labels, integer=st.booleans(), minimum=amounts, maximum=amounts, default=amounts),
    st.builds(form.BooleanField, **labels, default=st.none() | st.booleans()),
    st.builds(form.SelectField, **labels, choices=choices, legacy_titles=st.booleans(), default=words),
    st.builds(
        form.MultiSelectField,
        **labels,
        choices=choices,
        min_items=st.none() | tokens,
        max_items=st.none() | tokens,
        default=st.none() | many(text),
    ),
)
hints = st.none() | st.booleans()
durations = st.sampled_from(["once", "session", "always"])
subjects = st.one_of(
    st.builds(form.Form, fields=many(fields), undeclared=many(text)),
    st.builds(question.Link, url=text, host=text, warnings=many(text), elicitation_id=words),
    st.builds(
        question.Approval,
        tool=text,
        public_name=text,
        arguments=objects,
        annotations=st.builds(
            ToolAnnotations,
            title=words,
            read_only_hint=hints,
            destructive_hint=hints,
            idempotent_hint=hints,
            open_world_hint=hints,
        ),
        title=words,
        description=words,
        connector_id=words,
        connector_name=words,
        persist=many(durations),
        reason=text,
    ),
)
questions = st.builds(
    question.Question,
    id=text,
    server=text,
    message=text,
    subject=subjects,
    turn_id=words,
    call_id=words,
    certainty=st.sampled_from(["known", "only_call", "unknown"]),
    meta=st.none() | objects,
)
answerers = st.sampled_from(["user", "reviewer", "policy", "nobody"])
events = st.one_of(
    st.builds(event.ThreadStarted, name=words, model=words, forked_from=words),
    st.builds(event.ThreadNamed, name=words),
    st.builds(event.ThreadArchived, archived=st.booleans()),
    st.builds(event.ThreadAnnotated, key=text, value=objects),
    st.builds(event.ThreadRolledBack, turns=st.integers(1, 9)),
    st.builds(
        event.ThreadCompacted,
        summary=text,
        entries=many(entries),
        origins=objects,
        turn_id=words,
        usage=st.none() | usages,
    ),
    st.builds(event.TurnStarted, turn_id=text, input=many(parts), model=words, implicit=st.booleans()),
    st.builds(
        event.TurnEnded,
        turn_id=text,
        status=st.sampled_from(["completed", "failed", "interrupted"]),
        error=words,
        last_message=words,
    ),
    st.builds(
        event.StepCaptured,
        turn_id=text,
        step_id=text,
        generation=tokens,
        revision=tokens,
        tools=many(text),
        pending=many(text),
        same_tools_as=words,
    ),
    st.builds(event.EntriesRecorded, turn_id=text, entries=many(entries)),
    st.builds(event.MessageCompleted, turn_id=text, item=messages),
    st.builds(event.CallStarted, turn_id=text, step_id=text, item=calls),
    st.builds(event.CallEnded, turn_id=text, step_id=text, item=calls, effect=effects),
    st.builds(event.UsageRecorded, turn_id=text, usage=usages),
    st.builds(
        event.InputRequested,
        turn_id=text,
        call_id=text,
        request=st.builds(
            HeldRequest,
            server=text,
            whereabouts=text,
            method=text,
            params=objects,
            keys=st.lists(text, max_size=2).map(tuple),
            state=words,
        ),
        questions=st.lists(questions, max_size=2).map(tuple),
        turn=st.builds(
            event.TurnOptions,
            instructions=text,
            output_schema=st.none() | objects,
            plan_mode=st.booleans(),
            max_steps=st.integers(1, 100),
        ),
    ),
    st.builds(event.InputSent, turn_id=text, call_id=text),
    st.builds(event.QuestionAsked, question=questions),
    st.builds(
        event.QuestionAnswered,
        question_id=text,
        server=text,
        action=st.sampled_from(["accept", "decline", "cancel"]),
        by=answerers,
        content=st.none() | objects,
        remember=durations,
        question=st.none() | questions,
    ),
    st.builds(event.QuestionWithdrawn, question_id=text, server=text, reason=text),
    st.builds(
        event.QuestionDeclined, question_id=text, server=text, by=answerers, reason=text, question=st.none() | questions
    ),
)
