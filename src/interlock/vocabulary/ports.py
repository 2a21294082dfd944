"""What a room needs of the world, as Protocols.

Owns: the ports: Standstill, Respondent, Connection, EventStore, MemoryUses, Checkpoints, Unlisted, Store, Model,
Clock.
Never: implements one.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from interlock.vocabulary.conversation import ModelEvent, ModelRequest
from interlock.vocabulary.event import Event, StoredEvent, ThreadRecord, ThreadStarted
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.memory import MemoryUse
from interlock.vocabulary.question import Elicitation, InputResponses
from interlock.vocabulary.resource import (
    Completion,
    Listing,
    Page,
    Prompt,
    PromptResult,
    Resource,
    ResourceRead,
    ResourceTemplate,
)
from interlock.vocabulary.server import ServerReport
from interlock.vocabulary.thread import ThreadCheckpoint
from interlock.vocabulary.tool import Progress, Tool, ToolResult

OnProgress = Callable[[Progress], None]
"""Called on the event loop for each progress notification; it must not wait."""


class Clock(Protocol):
    """Time, so that tests can own it."""

    def monotonic(self) -> float: ...

    def now_milliseconds(self) -> int:
        """Since the Unix epoch."""
        ...


class Standstill(Protocol):
    """Time that does not count for deadlines of calls (CON-11)."""

    @property
    def seconds(self) -> float:
        """All of it so far; it grows while time stands still."""
        ...

    def at_end(self, then: Callable[[], None]) -> bool:
        """Whether time stands still now; then `then` is called when that ends, on the event loop. It must not wait."""
        ...


class Respondent(Protocol):
    """Whom the questions of a server reach: a Thread, for one of its requests or for all that are nobody's.

    `call_id` and `turn_id` are those of the request; None where it belongs to no call, or no turn. `standstill`: when
    deadlines of its requests stand still; None: never by this.
    """

    @property
    def call_id(self) -> str | None: ...

    @property
    def turn_id(self) -> str | None: ...

    @property
    def standstill(self) -> Standstill | None: ...

    async def answers(self, elicitations: Sequence[Elicitation]) -> Sequence[JsonObject]:
        """The results for the server, in order. Cancelling withdraws the questions (QST-5).

        Raises:
            InvalidRequest: one of them is malformed, to be answered as a protocol error; nobody was asked any.
            StorageFailed: a fact could not be stored.
        """
        ...


class Connection(Protocol):
    """A configured server that can be asked, whatever its transport and era.

    Every method that asks waits until the connection is ready, within its `timeout` (seconds, the
    whole operation included) and the start-up deadline. All raise ServerFailed: kind and effect
    say what happened. Cancelling the awaiting task tells the server where the protocol allows it
    (CON-10).

    A 2026-07-28 server may let lists and reads be kept for a while; `fresh` reaches it in any case (CON-17). A server
    that does not offer what is asked fails with kind "unsupported"; one without tools lists none.
    """

    @property
    def server(self) -> str: ...

    def report(self) -> ServerReport: ...

    async def ready(self, timeout: float) -> None:
        """Return once requests can be sent; ServerFailed (effect none) if that does not come about."""
        ...

    async def list_tools(self, *, timeout: float, fresh: bool = False, held: bool = False) -> Listing[Tool]:
        """Every page. `held`: what this connection listed before will do, unless the server said that it changed."""
        ...

    async def list_resources(self, *, cursor: str | None, timeout: float, fresh: bool = False) -> Page[Resource]: ...

    async def list_all_resources(self, *, timeout: float, fresh: bool = False) -> Listing[Resource]: ...

    async def list_resource_templates(
        self, *, cursor: str | None, timeout: float, fresh: bool = False
    ) -> Page[ResourceTemplate]: ...

    async def list_all_resource_templates(
        self, *, timeout: float, fresh: bool = False
    ) -> Listing[ResourceTemplate]: ...

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float,
        meta: JsonObject | None = None,
        fresh: bool = False,
        respondent: Respondent | None = None,
        input_responses: InputResponses | None = None,
    ) -> ResourceRead:
        """The contents. `respondent`, `input_responses`: as in `call_tool`."""
        ...

    async def subscribe_resource(self, uri: str, *, timeout: float) -> None:
        """Hear of changes of `uri` (RES-12), over restarts too; each call needs one `unsubscribe_resource`."""
        ...

    async def unsubscribe_resource(self, uri: str, *, timeout: float) -> None: ...

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None,
        *,
        timeout: float,
        on_progress: OnProgress | None = None,
        meta: JsonObject | None = None,
        safe_to_repeat: bool = False,
        respondent: Respondent | None = None,
        input_responses: InputResponses | None = None,
    ) -> ToolResult:
        """Call the tool by its remote name.

        `safe_to_repeat` (see ToolAnnotations): the call may be sent once more after its session was lost (CON-7).
        `respondent` answers what the server asks meanwhile. `input_responses`: the call is one that an earlier host
        made, and goes on with the answers to what the server had asked then (QST-9).
        """
        ...

    async def list_all_prompts(self, *, timeout: float, fresh: bool = False) -> Listing[Prompt]: ...

    async def get_prompt(
        self, name: str, arguments: dict[str, str], *, timeout: float, respondent: Respondent | None = None
    ) -> PromptResult: ...

    async def complete(
        self, reference: JsonObject, argument: str, value: str, *, context: dict[str, str], timeout: float
    ) -> Completion: ...


class EventStore(Protocol):
    """Where the events of Threads are kept. All methods raise StorageFailed."""

    async def append(self, thread_id: str, events: Sequence[Event], *, after: int, at: int) -> tuple[StoredEvent, ...]:
        """Store all `events` or none, numbered from `after` + 1; durable when it returns.

        StorageFailed when the Thread's last sequence is not `after`: somebody else wrote.
        InvalidRequest, and nothing stored, when an event holds what JSON cannot carry. Once begun
        it is carried to its outcome: a cancellation that comes meanwhile is delivered after it returned.
        """
        ...

    def read(self, thread_id: str, *, after: int = 0) -> AsyncGenerator[StoredEvent, None]:
        """The events numbered above `after`, in order, in bounded memory; the caller closes it (aclosing)."""
        ...

    def claim(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        """The right to be the one writer of a Thread, for as long as the block lasts (HIS-7).

        StorageFailed when somebody holds it, with the facts `process_id`, `host` and `since`
        (milliseconds since the Unix epoch) of the owner. A dead owner's claim is free.
        """
        ...

    async def find(self, thread_id: str) -> ThreadRecord | None: ...

    async def threads(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        before_id: str | None = None,
        archived: bool | None = None,
    ) -> tuple[ThreadRecord, ...]:
        """Newest first by `updated_at`, then by id, largest first.

        To continue a list, pass the last record's `updated_at` as `before` and its `thread_id` as
        `before_id`; without `before_id` the list continues below that time. `archived`: only those that are put
        away, or that are not; None: all.
        """
        ...


class MemoryUses(Protocol):
    """How often the memories made of Threads were cited (MEM-5). All methods raise StorageFailed."""

    async def count_memory_uses(self, thread_ids: Sequence[str], *, at: int) -> None:
        """One use more for each of these Threads, all in one transaction; ids of no stored Thread are skipped."""
        ...

    async def memory_uses(self, *, limit: int = 50) -> tuple[MemoryUse, ...]:
        """The most used first."""
        ...


class Checkpoints(Protocol):
    """Folded states that save reading a long Thread from its start; never the authority. All raise StorageFailed."""

    async def save_checkpoint(self, checkpoint: ThreadCheckpoint) -> None:
        """Keep it in place of the one before. A Thread that stands elsewhere or is gone: nothing happens."""
        ...

    async def load_checkpoint(self, thread_id: str) -> ThreadCheckpoint | None:
        """The kept one; None when there is none that fits the stored events and this version."""
        ...


class Unlisted(Protocol):
    """Threads that come in from elsewhere page by page: nobody finds one before it is whole. All raise StorageFailed.

    What is unlisted has events and no line in the index. A process that was killed leaves it so for ever; it can be
    forgotten by whoever holds its claim (`delete_thread`).
    """

    async def store_unlisted(self, events: Sequence[StoredEvent]) -> None:
        """Store events of one Thread in their places, all or none; the caller holds its claim, and lists it later."""
        ...

    async def list_thread(self, record: ThreadRecord) -> None:
        """Give an unlisted Thread its line in the index: from here on it is one like any other.

        StorageFailed, and it stays unlisted, unless exactly the events 1 to `record.last_sequence` are stored of it.
        """
        ...

    async def unlisted(self) -> tuple[str, ...]:
        """The ids of all of them: those that are just coming in, and those that never came in whole."""
        ...


class Store(EventStore, MemoryUses, Checkpoints, Unlisted, Protocol):
    """All that a Host keeps. All methods raise StorageFailed."""

    async def copy_thread(self, source: str, birth: ThreadStarted, record: ThreadRecord) -> None:
        """Store a new Thread: `birth`, and the events of `source` from its second to number `record.last_sequence`.

        All or none; `record` is the new Thread's line in the index, its `created_at` the time of `birth`.
        StorageFailed when `source` has not all of these events (any more).
        """
        ...

    async def delete_thread(self, thread_id: str) -> None:
        """Forget a Thread and all that is stored of it; the caller holds its claim. No Thread: nothing happens."""
        ...


class Model(Protocol):
    """A language model. `provider` names the dialect of OpaqueEntry payloads."""

    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str: ...

    def sample(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask once. The last event is SamplingCompleted, or ModelFailed is raised.

        The iterator is an async generator: the caller closes it (contextlib.aclosing).
        """
        ...


@runtime_checkable
class PreparedModel(Protocol):
    """A Model that has something to load before it can be asked."""

    async def prepare_sampling(self) -> None:
        """Load it; called in a turn before its first Step is captured, so that the servers' time to start is not lost
        while the model loads. Must not raise: what is missing is told by `sample`."""
        ...
