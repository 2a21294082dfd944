"""One sampling of a model, as it streams.

Owns: what was said so far: entries in order (raw), finished messages (as people may see them), calls, usage.
Never: asks a model, stores anything, or lets hidden markup through to people (MEM-1).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from interlock.memory.markup import VisibleText
from interlock.memory.message import finished_message
from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    Entry,
    EntryCompleted,
    ModelEvent,
    SamplingCompleted,
    TextDelta,
    Usage,
)
from interlock.vocabulary.event import EntriesRecorded, Event, MessageCompleted, UsageRecorded
from interlock.vocabulary.item import AgentMessageItem


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the message `item_id`."""

    item_id: str
    text: str


@dataclass(slots=True, kw_only=True)
class Sampling:
    """The material of one sampling of the turn `turn_id`; `new_id` names its messages.

    `plan_mode`: proposed plans are hidden too (MEM-2).
    """

    turn_id: str
    new_id: Callable[[], str]
    plan_mode: bool = False
    entries: list[Entry] = field(default_factory=list[Entry])
    messages: list[AgentMessageItem] = field(default_factory=list[AgentMessageItem])
    usage: Usage | None = None
    completed: bool = False
    _writing: str | None = None
    """The id of the message that is being written."""
    _visible: VisibleText | None = None
    """What may be shown of it."""
    _planned: list[Delta] = field(default_factory=list[Delta])
    """Pieces of plans that nobody has taken yet."""
    _shown: list[str] = field(default_factory=list[str])
    _proposed: list[str] = field(default_factory=list[str])
    """What people have seen so far of the message that is being written, and of its plan."""

    @property
    def calls(self) -> tuple[CallEntry, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, CallEntry))

    @property
    def last_message(self) -> str | None:
        """The last message that is not blank."""
        return next((item.text for item in reversed(self.messages) if item.text.strip()), None)

    @property
    def cited(self) -> tuple[str, ...]:
        """The rollout ids that finished messages cite, once for each message (MEM-5)."""
        citations = (item.citation for item in self.messages if item.citation is not None)
        return tuple(rollout_id for citation in citations for rollout_id in citation["rolloutIds"])

    def take(self, event: ModelEvent) -> Delta | None:
        """Note one event of the model; what people may see of it comes back with the id of its message."""
        match event:
            case TextDelta():
                return self._delta(self._filter().feed(event.text))
            case EntryCompleted(entry=AssistantEntry() as entry):
                return self._complete_message(entry)
            case EntryCompleted():
                self.entries.append(event.entry)
            case SamplingCompleted():
                self.usage, self.completed = event.usage, True
        return None

    def take_plans(self) -> tuple[Delta, ...]:
        """What was hidden as proposed plans since the last time, with the ids of their messages (MEM-2)."""
        planned, self._planned = tuple(self._planned), []
        return planned

    def whole(self) -> tuple[Event, ...]:
        """The facts of a sampling that came to its end."""
        entries = EntriesRecorded(turn_id=self.turn_id, entries=tuple(self.entries))
        usage = () if self.usage is None else (UsageRecorded(turn_id=self.turn_id, usage=self.usage),)
        return (*((entries,) if self.entries else ()), *self._messages_completed(), *usage)

    def broken_off(self) -> tuple[Event, ...]:
        """The facts of one that did not: messages, as far as people have read them.

        Calls were not made, and a provider refuses reasoning without what followed it, so both go. A message that was
        not finished stays for people only: no model is shown the half of one as its own.
        """
        said = tuple(entry for entry in self.entries if isinstance(entry, AssistantEntry))
        entries = (EntriesRecorded(turn_id=self.turn_id, entries=said),) if said else ()
        if self._shown or self._proposed:
            plan = "".join(self._proposed) or None
            self.messages.append(AgentMessageItem(id=self._message_id(), text="".join(self._shown), plan=plan))
            self._begin_message()
        return (*entries, *self._messages_completed())

    def _messages_completed(self) -> tuple[MessageCompleted, ...]:
        return tuple(MessageCompleted(turn_id=self.turn_id, item=item) for item in self.messages)

    def _complete_message(self, entry: AssistantEntry) -> Delta | None:
        """The message from its whole text; what a possible tag still held back of its deltas is shown now."""
        self.entries.append(entry)
        message = finished_message(entry.text, plan_mode=self.plan_mode)
        citation = None if message.citation is None else message.citation.json()
        item = AgentMessageItem(id=self._message_id(), text=message.text, citation=citation, plan=message.plan)
        self.messages.append(item)
        rest = self._delta(self._filter().finish())
        self._begin_message()
        return rest

    def _begin_message(self) -> None:
        self._writing = self._visible = None
        self._shown, self._proposed = [], []

    def _delta(self, visible: str) -> Delta | None:
        plan = self._filter().take_plan()
        if plan:
            self._planned.append(Delta(self._message_id(), plan))
            self._proposed.append(plan)
        if not visible:
            return None
        self._shown.append(visible)
        return Delta(self._message_id(), visible)

    def _filter(self) -> VisibleText:
        if self._visible is None:
            self._visible = VisibleText(plan_mode=self.plan_mode)
        return self._visible

    def _message_id(self) -> str:
        if self._writing is None:
            self._writing = self.new_id()
        return self._writing
