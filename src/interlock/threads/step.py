"""One sampling and the calls it makes, as the caller of a model sees it.

Owns: the public face of a Step, and the translation of what a call came to into text for a model.
Never: raises what a model can be told; only a misuse of the Step itself is raised.
"""

from dataclasses import dataclass

from interlock.history.clip import clip_text
from interlock.threads.call import Caller
from interlock.threads.lifecycle import Ending
from interlock.threads.request import read_request
from interlock.vocabulary.construction import quickly_made
from interlock.vocabulary.conversation import OutputEntry, Part, TextPart
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.snapshot import Binding
from interlock.vocabulary.tool import ToolSpec


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What a call came to, under the call id it was made with.

    `content` is what a model should see, clipped (RES-10); `text` is its text. `is_error`: the
    call was refused, failed, or its result says so. `item` is the ended item as stored; for a
    call id that was used before it is the refusal, which is not stored (LIF-8).
    """

    call_id: str
    content: tuple[Part, ...]
    item: McpToolCallItem
    is_error: bool

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def output(self) -> OutputEntry:
        """The entry for the model's history."""
        return OutputEntry(call_id=self.call_id, content=self.content, success=not self.is_error)


class Step:
    """One frozen view of tools and servers, and the calls made through it (CAT-6).

    Usable until its `async with` block ends; calls may run side by side.
    """

    def __init__(self, binding: Binding, caller: Caller) -> None:
        self._binding = binding
        self._caller = caller
        self._open = True

    def __repr__(self) -> str:
        state = "open" if self._open else "over"
        return f"<Step {self.id} {state}, revision {self._binding.snapshot.catalog.revision}>"

    @property
    def id(self) -> str:
        return self._binding.step_id

    @property
    def binding(self) -> Binding:
        """All that this Step sees."""
        return self._binding

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The functions to offer to the model, sorted by name; equal catalogues give equal tools (CAT-7)."""
        return self._binding.tools

    @property
    def pending(self) -> tuple[str, ...]:
        """Servers that were still starting when the Step began; they join a later one (CON-3)."""
        return self._binding.pending

    async def call(self, call_id: str, public_name: str, arguments: str | JsonObject | None = None) -> CallResult:
        """Make one call of the model; `arguments` is its JSON text, or an object.

        Whatever goes wrong with the call comes back as a result with `is_error`, under the same
        call id, for the model to read; the Thread keeps one started and one ended item (LIF-1).

        Raises:
            InvalidRequest: the Step is over, or `call_id` is blank.
            StorageFailed: the item could not be stored.
        """
        if not self._open:
            raise InvalidRequest(f"call {call_id!r} came after its step was over; open a new step")
        if not call_id.strip():
            raise InvalidRequest(f"a call of {public_name!r} needs a call id that is not blank")
        ending = await self._caller.run(self._binding, read_request(call_id, public_name, arguments))
        return _result(ending, self._caller.rules.output_limit)

    def end(self) -> None:
        """No call is taken from now on."""
        self._open = False


def _result(ending: Ending, limit: int) -> CallResult:
    item = ending.item
    if item.error is not None:
        content: tuple[Part, ...] = (TextPart(text=clip_text(item.error.message, limit)),)
    else:
        content = ending.answer.content if ending.answer is not None else ()
    return CallResult(call_id=item.id, content=content, item=item, is_error=item.status == "failed")
