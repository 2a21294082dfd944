"""Resources that a Thread subscribed to: their changes are told without content, over reloads and between Threads."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock import Host, ServerConfig, ServerFailed, Thread
from interlock.threads.notices import NoticeStream
from interlock.vocabulary.notice import ListChangedNotice, Notice, ResourceUpdatedNotice, WarningNotice
from tests.host.conftest import READ_ONLY, OpenHost, answering
from tests.host.test_host import Servers, until
from tests.host.test_reload import another
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

URI = "notes://today"
ERAS = pytest.mark.parametrize("era", ["handshake", "stateless"])


def notes(era: str, **settings: Any) -> dict[str, Any]:
    """A server whose tool `write` changes its one resource and says so."""
    write = {
        "name": "write",
        "annotations": READ_ONLY,
        "do": [
            {"set": {"resources": [{"uri": URI, "name": "today", "text": "new"}]}},
            {"notify": {"method": "notifications/resources/updated", "params": {"uri": URI}}},
            {"text": "written"},
        ],
    }
    resources = [{"uri": URI, "name": "today", "text": "old"}]
    return {"eras": [era], "resources": resources, "tools": [write], **settings}


async def next_of(kind: type[Notice], notices: NoticeStream) -> Notice:
    with anyio.fail_after(60):
        async for notice in notices:
            if isinstance(notice, kind):
                return notice
    raise AssertionError("the notices ended")


async def write(thread: Thread, call_id: str = "1") -> None:
    async with thread.step() as step:
        assert (await step.call(call_id, "mcp__notes__write")).text == "written"


async def text_of(thread: Thread) -> str | None:
    (content,) = (await thread.requests.read_resource("notes", URI)).contents
    return content.text


@requirement("RES-12")
@ERAS
async def test_a_change_of_a_subscribed_resource_is_told_without_content_and_read_again(
    open_host: OpenHost, servers: Servers, tmp_path: Path, era: str
) -> None:
    trace = tmp_path / "trace"
    async with open_host(servers(notes=notes(era, trace=str(trace)))) as host:
        thread = await host.start_thread()
        assert await text_of(thread) == "old"
        notices = thread.notices()

        await thread.subscribe_resource("notes", URI)
        await thread.subscribe_resource("notes", URI)
        await listening(trace, era)
        await write(thread)

        assert await next_of(ResourceUpdatedNotice, notices) == ResourceUpdatedNotice(server="notes", uri=URI)
        assert await text_of(thread) == "new"

        await thread.unsubscribe_resource("notes", URI)
        await thread.unsubscribe_resource("notes", "notes://never")
        await write(thread, "2")
        await thread.close()
        assert [notice async for notice in notices if isinstance(notice, ResourceUpdatedNotice)] == []


async def listening(trace: Path, era: str) -> None:
    """Wait until the server was told of the subscription."""
    await received(trace, "resources/subscribe" if era == "handshake" else "resourceSubscriptions")


async def received(trace: Path, words: str) -> None:
    await until(lambda: trace.exists() and words in trace.read_text(encoding="utf-8"))


@requirement("RES-12")
async def test_threads_that_share_a_server_hear_of_their_own_resources_only(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    async with open_host(servers(notes=notes("stateless", trace=str(trace)))) as host:
        first = await host.start_thread()
        assert await text_of(first) == "old"
        second = await host.start_thread()
        assert await text_of(second) == "old"
        heard, unheard = first.notices(), second.notices()
        await first.subscribe_resource("notes", "notes://")
        await listening(trace, "stateless")

        await write(second)

        assert await next_of(ResourceUpdatedNotice, heard) == ResourceUpdatedNotice(server="notes", uri=URI)
        await second.close()
        assert [notice async for notice in unheard if isinstance(notice, ResourceUpdatedNotice)] == []


@requirement("RES-12", "CFG-6")
@ERAS
async def test_a_subscription_moves_with_a_reload_and_says_that_something_may_have_been_missed(
    open_host: OpenHost, servers: Servers, tmp_path: Path, era: str
) -> None:
    configs = servers(notes=notes(era))
    async with open_host(configs) as host:
        thread = await host.start_thread()
        await thread.subscribe_resource("notes", URI)
        notices = thread.notices()
        trace = tmp_path / "second"

        changed = {"notes": another(servers(notes=notes(era, trace=str(trace)))["notes"])}
        await host.reload(changed)

        await next_of(ResourceUpdatedNotice, notices)  # missed, perhaps
        await listening(trace, era)
        await write(thread)
        await next_of(ResourceUpdatedNotice, notices)

        await host.reload(servers(other={}))
        warning = await next_of(WarningNotice, notices)
        assert isinstance(warning, WarningNotice)
        assert "no longer heard of: server 'notes' is gone" in warning.message


@requirement("RES-12")
async def test_what_cannot_be_subscribed_to_is_refused(open_host: OpenHost, servers: Servers) -> None:
    async with open_host(servers(plain={"tools": [answering("one", "1")]})) as host:
        thread = await host.start_thread()
        with pytest.raises(ServerFailed) as failed:
            await thread.subscribe_resource("plain", URI)
        assert failed.value.kind == "unsupported"


@requirement("RES-12")
async def test_a_thread_that_closes_takes_its_subscriptions_back_from_a_server_that_others_still_use(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    script = notes("handshake", trace=str(trace))
    configs: dict[str, ServerConfig] = {n: replace(c, shared=True) for n, c in servers(notes=script).items()}
    async with open_host(configs) as host:
        assert isinstance(host, Host)
        closing, staying = await host.start_thread(), await host.start_thread()
        await closing.subscribe_resource("notes", URI)
        assert "resources/unsubscribe" not in trace.read_text(encoding="utf-8")

        await closing.close()

        assert "resources/unsubscribe" in trace.read_text(encoding="utf-8")
        assert await text_of(staying) == "old"


@requirement("CON-14")
@ERAS
@pytest.mark.parametrize("kind", ["resources", "prompts"])
async def test_a_list_that_changed_is_told_to_those_who_may_list_it_again(
    open_host: OpenHost, servers: Servers, tmp_path: Path, era: str, kind: Any
) -> None:
    trace = tmp_path / "trace"
    say = {"notify": {"method": f"notifications/{kind}/list_changed", "params": {}}}
    change = {"name": "change", "annotations": READ_ONLY, "do": [say, {"text": "changed"}]}
    prompts = [{"name": "p", "messages": []}]
    script = notes(era, tools=[change], prompts=prompts, trace=str(trace))
    async with open_host(servers(notes=script)) as host:
        thread = await host.start_thread()
        notices = thread.notices()
        if era == "stateless":
            await received(trace, f"{kind}ListChanged")
        async with thread.step() as step:
            assert (await step.call("1", "mcp__notes__change")).text == "changed"

        assert await next_of(ListChangedNotice, notices) == ListChangedNotice(server="notes", kind=kind)
