"""The operations of a scenario, done with the library as an application does them.

Owns: one Host with one Thread over the animal and its neighbours, from the first operation to the last.
Never: judges; `judging` does.

Tools are listed as the model sees them: the catalogue of a Step. A tool that is in the catalogue is called as the
model calls it, any other as an application does (by its remote name). A server is closed by a reload without it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from interlock import CallResult, Host, InterlockError, ServerConfig, Step, Thread
from interlock.vocabulary.item import ItemError
from interlock.vocabulary.resource import Page
from interlock.vocabulary.tool import ToolResult
from tests.zoo.animals import Animal
from tests.zoo.judging import Outcome
from tests.zoo.people import somebody

DEFAULT_TIMEOUT = 5.0
BIG = {"$BIG": "B" * 300_000, "$BIG8": "b" * 8_000}
"""What these words in the arguments of an operation stand for."""
MAXIMUM_PAGES = 100
"""Pages of resources that an application reads before it takes the server for endless (CAT-1 uses the same)."""

Operation = dict[str, Any]


class OperationFailed(Exception):
    """An operation came to an error; its text is what an application or a model is told."""


def configured(name: str, animal: Animal) -> ServerConfig:
    """The animal as a table of a configuration. One bad tool falls alone; calls may run side by side."""
    host = animal.scenario.host
    return ServerConfig(
        name=name,
        transport=animal.transport,
        startup_timeout=float(host.get("startup_timeout", DEFAULT_TIMEOUT)),
        tool_timeout=float(host.get("tool_timeout", DEFAULT_TIMEOUT)),
        supports_parallel_tool_calls=True,
        on_bad_tool="skip",
    )


@asynccontextmanager
async def driver(animals: dict[str, Animal], store: Path) -> AsyncIterator["Driver"]:
    """A Host with the animals by server name, and a Thread in which all of them start."""
    servers = {name: configured(name, animal) for name, animal in animals.items()}
    grace = max(config.startup_timeout for config in servers.values())
    people = animals["animal"].scenario.host
    async with Host(servers, store=store, approvals="allow", grace=grace, elicitation="elicitation" in people) as host:
        thread = await host.start_thread()
        async with somebody(thread, people):
            yield Driver(host, thread)


class Driver:
    """Does one operation after the other; each is an Outcome, whatever happens."""

    def __init__(self, host: Host, thread: Thread) -> None:
        self._host = host
        self._thread = thread
        self._call_ids = count(1)
        self._operations: dict[str, Callable[[Operation], Awaitable[Outcome]]] = {
            "connect": self._connect,
            "list_tools": self._list_tools,
            "list_resources": self._list_resources,
            "list_templates": self._list_templates,
            "read": self._read,
            "list_prompts": self._list_prompts,
            "prompt": self._prompt,
            "complete": self._complete,
            "call": self._call,
            "parallel": self._parallel,
            "wait": self._wait,
            "close": self._close,
        }

    async def do(self, operation: Operation) -> Outcome:
        try:
            return await self._operations[operation["op"]](operation)
        except (InterlockError, OperationFailed) as error:
            return Outcome(error=str(error) or type(error).__name__)

    async def _connect(self, operation: Operation) -> Outcome:
        async with self._thread.requests.holding(_server(operation)) as view:
            await view.connection.ready(view.config.startup_timeout)
        return Outcome()

    async def _list_tools(self, operation: Operation) -> Outcome:
        server = _server(operation)
        async with self._thread.step() as step:
            if (failure := self._thread.listing_failures.get(server)) is not None:
                raise OperationFailed(failure)
            if server in step.pending:
                raise OperationFailed(f"the tools of server {server!r} are not known yet")
            entries = [e for e in step.binding.snapshot.catalog.entries.values() if e.server == server]
            return Outcome(
                names=[entry.tool.name for entry in entries],
                exposed=[spec.name for spec in step.tools],
                text="\n".join(entry.spec.description for entry in entries),
            )

    async def _list_resources(self, operation: Operation) -> Outcome:
        pages = await self._pages(self._thread.requests.list_resources, operation)
        return Outcome(names=[resource.uri for page in pages for resource in page.entries])

    async def _list_templates(self, operation: Operation) -> Outcome:
        pages = await self._pages(self._thread.requests.list_resource_templates, operation)
        return Outcome(names=[template.uri_template for page in pages for template in page.entries])

    async def _pages(self, ask: Callable[..., Awaitable[Page[Any]]], operation: Operation) -> list[Page[Any]]:
        pages: list[Page[Any]] = []
        cursor, seen = None, set[str | None]()
        while cursor not in seen and len(pages) < MAXIMUM_PAGES:
            seen.add(cursor)
            page = await ask(_server(operation), cursor=cursor)
            pages.append(page)
            if (cursor := page.next_cursor) is None:
                return pages
        raise OperationFailed("the listing does not end")

    async def _read(self, operation: Operation) -> Outcome:
        read = await self._thread.requests.read_resource(_server(operation), operation["uri"])
        return Outcome(
            names=[content.uri for content in read.contents],
            text="\n".join(content.text or content.blob or "" for content in read.contents),
        )

    async def _list_prompts(self, operation: Operation) -> Outcome:
        listing = await self._thread.requests.list_prompts(_server(operation))
        return Outcome(names=[prompt.name for prompt in listing.entries])

    async def _prompt(self, operation: Operation) -> Outcome:
        found = await self._thread.requests.get_prompt(_server(operation), operation["name"])
        return Outcome(text="\n".join(str(message.get("content")) for message in found.messages))

    async def _complete(self, operation: Operation) -> Outcome:
        found = await self._thread.requests.complete_prompt(
            _server(operation), operation["prompt"], operation["argument"]
        )
        return Outcome(names=list(found.values))

    async def _call(self, operation: Operation) -> Outcome:
        with anyio.move_on_after(operation.get("cancel_after")) as patience:
            return await self._call_once(operation)
        assert patience.cancelled_caught
        raise OperationFailed("cancelled")

    async def _call_once(self, operation: Operation) -> Outcome:
        entry = self._thread.snapshot.catalog.find(_server(operation), operation["tool"])
        if entry is None:
            return await self._ask_for_call(operation)
        async with self._thread.step() as step:
            return await self._model_call(step, operation)

    async def _ask_for_call(self, operation: Operation) -> Outcome:
        result = await self._thread.requests.call_tool(_server(operation), operation["tool"], _arguments(operation))
        return Outcome(text=_text(result), is_error=result.is_error)

    async def _model_call(self, step: Step, operation: Operation) -> Outcome:
        entry = step.binding.snapshot.catalog.find(_server(operation), operation["tool"])
        if entry is None:
            return await self._ask_for_call(operation)
        result = await step.call(f"call-{next(self._call_ids)}", entry.public_name, _arguments(operation))
        if (error := result.item.error) is not None:
            raise OperationFailed(_told(error, result))
        assert result.item.result is not None
        # The model is told structured content alone (CAT-9); the item keeps the text too.
        return Outcome(text=_text(result.item.result), is_error=result.is_error)

    async def _parallel(self, operation: Operation) -> Outcome:
        texts: dict[int, str | None] = {}
        async with self._thread.step() as step, anyio.create_task_group() as tasks:

            async def one(index: int, call: Operation) -> None:
                texts[index] = (await self._model_call(step, call)).text

            for index, call in enumerate(operation["ops"]):
                tasks.start_soon(one, index, call)
        return Outcome(text="|".join(texts[index] or "" for index in sorted(texts)))

    async def _wait(self, operation: Operation) -> Outcome:
        await anyio.sleep(operation["seconds"])  # the scenario says that this time passes
        return Outcome()

    async def _close(self, operation: Operation) -> Outcome:
        servers = dict(self._host.configuration.servers)
        if servers.pop(_server(operation), None) is not None:
            async with self._thread.requests.holding(_server(operation)) as view:
                connection = view.connection
            await self._host.reload(servers)
            async with self._thread.step():
                pass  # the next Step sees the servers without it
            await connection.supervisor.wait_closed()  # type: ignore[attr-defined]  # beyond the port
        return Outcome()


def _server(operation: Operation) -> str:
    return str(operation.get("server", "animal"))


def _arguments(operation: Operation) -> dict[str, Any]:
    return {name: BIG.get(value, value) for name, value in operation.get("args", {}).items()}


def _text(result: ToolResult) -> str:
    return "\n".join(str(block.get("text", f"[{block.get('type')}]")) for block in result.content)


def _told(error: ItemError, result: CallResult) -> str:
    """What the model is told, unless a cut hides the sentence itself."""
    return result.text or error.message
