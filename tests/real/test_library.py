"""Servers that nobody here wrote, through the library."""

import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock import Host, ServerConfig, Step, Thread
from interlock.threads.step import CallResult
from interlock.vocabulary.conversation import MediaPart
from interlock.vocabulary.notice import ProgressNotice
from interlock.vocabulary.server import ServerReport
from tests.manifest import requirement
from tests.real.servers import (
    everything_over_http,
    everything_server,
    git_server,
    needs_everything,
    repository,
    time_server,
)

pytestmark = pytest.mark.anyio
GRACE = 30.0


@pytest.fixture(autouse=True)
def nothing_breaks_in_the_background(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """asyncio only logs what a callback raises."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def host(folder: Path, *servers: ServerConfig, **settings: Any) -> Host:
    return Host({server.name: server for server in servers}, store=folder / "threads.db", grace=GRACE, **settings)


def report_of(thread: Thread, server: str) -> ServerReport:
    return next(report for report in thread.reports() if report.name == server)


async def call(thread: Thread, step: Step, server: str, tool: str, arguments: dict[str, Any]) -> CallResult:
    """Call a remote tool under the name that the catalogue gave it."""
    entry = thread.snapshot.catalog.find(server, tool)
    assert entry is not None, f"{server} offers no {tool}"
    return await step.call(f"call of {tool} {len(thread.items)}", entry.public_name, arguments)


async def test_the_time_server_tells_the_time_and_refuses_a_place_that_does_not_exist(tmp_path: Path) -> None:
    async with host(tmp_path, time_server()) as opened:
        thread = await opened.start_thread()
        async with thread.step() as step:
            good = await step.call("c1", "mcp__time__get_current_time", {"timezone": "Europe/Berlin"})
            bad = await step.call("c2", "mcp__time__get_current_time", {"timezone": "Atlantis"})
        report = report_of(thread, "time")
    assert json.loads(good.text)["timezone"] == "Europe/Berlin"
    assert good.item.status == "completed"
    assert bad.is_error
    assert "Atlantis" in bad.text
    assert (report.era, report.protocol_version) == ("stateless", "2026-07-28")


@requirement("APR-1")
async def test_the_git_server_does_what_is_harmless_freely_and_the_rest_only_when_allowed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with repository(tmp_path / "work") as folder:
        where = {"repo_path": str(folder)}
        async with host(tmp_path, git_server()) as opened:
            thread = await opened.start_thread()
            async with thread.step() as step:
                log = await step.call("c1", "mcp__git__git_log", where)
                made = await step.call("c2", "mcp__git__git_create_branch", {**where, "branch_name": "later"})
                refused = await step.call("c3", "mcp__git__git_reset", where)
        async with host(tmp_path, git_server(), approvals="allow") as opened:
            thread = await opened.start_thread()
            async with thread.step() as step:
                allowed = await step.call("c1", "mcp__git__git_reset", where)
        branches = {path.name for path in (folder / ".git/refs/heads").iterdir()}
    assert "the first note" in log.text
    assert refused.item.error is not None
    assert refused.item.error.code == "not_permitted"
    assert not made.is_error  # neither destructive nor open to the world, as it says of itself
    assert not allowed.is_error
    assert branches == {"main", "later"}


@pytest.fixture(params=["stdio", "http"])
async def everything(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Host, Thread]]:
    """A Thread over server-everything, by either transport."""
    async with AsyncExitStack() as stack:
        server = everything_server()
        if request.param == "http":
            server = await stack.enter_async_context(everything_over_http())
        opened = await stack.enter_async_context(host(tmp_path, server, approvals="allow"))
        yield opened, await opened.start_thread()


@needs_everything
@requirement("CON-4")
async def test_an_older_server_is_spoken_to_by_handshake(everything: tuple[Host, Thread]) -> None:
    _, thread = everything
    async with thread.step() as step:
        echoed = await call(thread, step, "everything", "echo", {"message": "grüß dich"})
        structured = await call(thread, step, "everything", "get-structured-content", {"location": "Chicago"})
        wrong = await call(thread, step, "everything", "get-sum", {"a": "one"})
    report = report_of(thread, "everything")
    assert echoed.text == "Echo: grüß dich"
    assert set(json.loads(structured.text)) == {"temperature", "conditions", "humidity"}
    assert wrong.is_error
    assert (report.era, report.protocol_version) == ("handshake", "2025-11-25")
    assert report.info is not None
    assert report.info.title == "Everything Reference Server"


@needs_everything
@requirement("CAT-10")
async def test_an_image_arrives_as_a_part_of_its_own_between_the_texts(everything: tuple[Host, Thread]) -> None:
    _, thread = everything
    async with thread.step() as step:
        result = await call(thread, step, "everything", "get-tiny-image", {})
    before, image, after = result.content
    assert isinstance(image, MediaPart)
    assert image.mime_type == "image/png"
    assert len(image.data) > 100
    assert not isinstance(before, MediaPart)
    assert not isinstance(after, MediaPart)


@needs_everything
@requirement("LIF-6")
async def test_progress_of_a_long_call_is_told_while_it_runs(everything: tuple[Host, Thread]) -> None:
    _, thread = everything
    notices, seen = thread.notices(), list[float]()

    async def listen() -> None:
        async for notice in notices:
            if isinstance(notice, ProgressNotice):
                seen.append(notice.progress.progress)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        async with thread.step() as step:
            arguments = {"duration": 0.4, "steps": 4}
            result = await call(thread, step, "everything", "trigger-long-running-operation", arguments)
        notices.close()
    assert "completed" in result.text
    assert seen == [1, 2, 3, 4]


@needs_everything
async def test_resources_are_listed_read_and_made_from_templates(everything: tuple[Host, Thread]) -> None:
    opened, thread = everything
    async with thread.step() as step:
        listed = json.loads((await step.call("c1", "list_mcp_resources", {"server": "everything"})).text)
        found = json.loads((await step.call("c2", "list_mcp_resource_templates", {})).text)
        first = listed["resources"][0]["uri"]
        read = json.loads((await step.call("c3", "read_mcp_resource", {"server": "everything", "uri": first})).text)
        template = next(t["uriTemplate"] for t in found["resourceTemplates"] if "text" in t["uriTemplate"])
        made = template.replace("{resourceId}", "7")
        page = json.loads((await step.call("c4", "read_mcp_resource", {"server": "everything", "uri": made})).text)
        missing = await step.call("c5", "read_mcp_resource", {"server": "everything", "uri": "demo://nowhere"})
    direct = await opened.read_resource("everything", first)
    assert read["contents"][0]["text"] == direct.contents[0].text
    assert "Resource 7" in page["contents"][0]["text"]
    assert missing.is_error


@needs_everything
async def test_prompts_and_completions_are_there_for_applications(everything: tuple[Host, Thread]) -> None:
    opened, _ = everything
    requests = opened.requests
    listed = await requests.list_prompts("everything")
    prompt = await requests.get_prompt("everything", "args-prompt", {"city": "Lyon"})
    reference = {"type": "ref/prompt", "name": "completable-prompt"}
    found = await requests.complete("everything", reference, "department", "E")
    assert "completable-prompt" in {prompt.name for prompt in listed.entries}
    assert "Lyon" in json.dumps(prompt.messages)
    assert found.values == ("Engineering",)


@needs_everything
@requirement("CON-4")
async def test_servers_of_both_eras_and_transports_are_one_catalogue(tmp_path: Path) -> None:
    everything = everything_server()
    async with everything_over_http() as over_http:
        remote = ServerConfig(name="remote", transport=over_http.transport)
        async with host(tmp_path, everything, remote, git_server(), time_server()) as opened:
            thread = await opened.start_thread()
            async with thread.step() as step:
                listed = json.loads((await step.call("c1", "list_mcp_resources", {})).text)
            names = [tool.name for tool in step.tools]
            eras = {report.name: report.era for report in thread.reports()}
    assert eras == {"everything": "handshake", "remote": "handshake", "git": "stateless", "time": "stateless"}
    assert names == sorted(set(names))
    assert {"mcp__everything__echo", "mcp__remote__echo", "mcp__time__convert_time", "mcp__git__git_status"} <= set(
        names
    )
    assert "errors" not in listed
    assert {entry["server"] for entry in listed["resources"]} == {"everything", "remote"}
