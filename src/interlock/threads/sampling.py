"""One sampling of a model, as it streams.

Owns: what was said so far: entries in order, finished messages, calls, usage.
Never: asks a model, or stores anything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

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
    """The material of one sampling of the turn `turn_id`; `new_id` names its messages."""

    turn_id: str
    new_id: Callable[[], str]
    entries: list[Entry] = field(default_factory=list[Entry])
    messages: list[AgentMessageItem] = field(default_factory=list[AgentMessageItem])
    usage: Usage | None = None
    completed: bool = False
    _writing: str | None = None
    """The id of the message that is being written."""

    @property
    def calls(self) -> tuple[CallEntry, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, CallEntry))

    @property
    def last_message(self) -> str | None:
        """The last message that is not blank."""
        return next((item.text for item in reversed(self.messages) if item.text.strip()), None)

    def take(self, event: ModelEvent) -> Delta | None:
        """Note one event of the model; a delta comes back with the id of its message."""
        match event:
            case TextDelta():
                return Delta(self._message_id(), event.text)
            case EntryCompleted():
                self._complete(event.entry)
            case SamplingCompleted():
                self.usage, self.completed = event.usage, True
        return None

    def whole(self) -> tuple[Event, ...]:
        """The facts of a sampling that came to its end."""
        entries = EntriesRecorded(turn_id=self.turn_id, entries=tuple(self.entries))
        usage = () if self.usage is None else (UsageRecorded(turn_id=self.turn_id, usage=self.usage),)
        return (*((entries,) if self.entries else ()), *self._messages_completed(), *usage)

    def broken_off(self) -> tuple[Event, ...]:
        """The facts of one that did not: finished messages, which people have read.

        Calls were not made, and a provider refuses reasoning without what followed it, so both go.
        """
        said = tuple(entry for entry in self.entries if isinstance(entry, AssistantEntry))
        if not said:
            return ()
        return (EntriesRecorded(turn_id=self.turn_id, entries=said), *self._messages_completed())

    def _messages_completed(self) -> tuple[MessageCompleted, ...]:
        return tuple(MessageCompleted(turn_id=self.turn_id, item=item) for item in self.messages)

    def _complete(self, entry: Entry) -> None:
        self.entries.append(entry)
        if isinstance(entry, AssistantEntry):
            self.messages.append(AgentMessageItem(id=self._message_id(), text=entry.text))
            self._writing = None

    def _message_id(self) -> str:
        if self._writing is None:
            self._writing = self.new_id()
        return self._writing
