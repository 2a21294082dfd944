"""The model's history replaced by the model's own summary of it.

Owns: what the model is asked for, and what its history is afterwards (HIS-4).
Never: touches items, or stores anything.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

from interlock.connections.cancelled import stop_if_cancelled
from interlock.vocabulary.conversation import (
    AssistantEntry,
    Entry,
    EntryCompleted,
    ModelEvent,
    ModelRequest,
    Part,
    SamplingCompleted,
    TextPart,
    Usage,
    UserEntry,
)
from interlock.vocabulary.errors import ModelFailed
from interlock.vocabulary.event import ThreadCompacted
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import Model

REQUEST = """Write a summary of this conversation so far. It replaces the conversation: whoever reads it must be able \
to go on without having seen the rest.

State, as far as they apply: what the user wants, in their own words where wording matters; what has been done and \
found out, with names, paths, ids and figures as they are; what was decided and why; what failed; what is left to do, \
and the next step. Answer with the summary alone."""

INTRODUCTION = "The conversation up to here was replaced by this summary of it:\n\n"


async def compacted(
    model: Model,
    entries: Sequence[Entry],
    *,
    instructions: str,
    origins: JsonObject,
    turn_id: str | None = None,
    turn_input: Sequence[Part] = (),
) -> ThreadCompacted:
    """Have `model` summarise `entries`; the fact that takes their place.

    `turn_id`, `turn_input`: the turn that runs meanwhile, whose request stays in the history word for word.

    Raises:
        ModelFailed: the model gave no summary.
    """
    request = UserEntry(content=(TextPart(text=REQUEST),))
    said, usage = await _ask(model, ModelRequest(entries=(*entries, request), instructions=instructions))
    summary = "\n".join(said).strip()
    if not summary:
        raise ModelFailed(f"model {model.name!r} gave no summary of the conversation; compact again")
    asked = (UserEntry(content=tuple(turn_input)),) if turn_input else ()
    history = (*asked, UserEntry(content=(TextPart(text=INTRODUCTION + summary),)))
    return ThreadCompacted(summary=summary, entries=history, origins=origins, turn_id=turn_id, usage=usage)


async def _ask(model: Model, request: ModelRequest) -> tuple[list[str], Usage | None]:
    """The messages of one sampling and its usage; calls that the model makes all the same are not carried out."""
    said: list[str] = []
    usage: Usage | None = None
    completed = False
    await stop_if_cancelled()
    stream = cast(AsyncGenerator[ModelEvent, None], model.sample(request))
    async with aclosing(stream) as events:
        async for event in events:
            match event:
                case EntryCompleted(entry=AssistantEntry(text=text)):
                    said.append(text)
                case SamplingCompleted():
                    usage, completed = event.usage, True
                case _:
                    pass
    if not completed:
        raise ModelFailed(f"the summary of model {model.name!r} ended before it was complete; compact again")
    return said, usage
