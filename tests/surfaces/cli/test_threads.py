"""Stored threads from a shell: resumed, forked, rolled back, compacted, exported, imported, archived, deleted."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from interlock import Host
from interlock.testing import Fail, Say, ScriptedEndpoint, ScriptedModel
from interlock.vocabulary.errors import ModelFailed
from interlock.vocabulary.event import CallStarted, TurnStarted
from interlock.vocabulary.item import McpToolCallItem
from tests.manifest import requirement
from tests.surfaces.cli.shell import Done, Shell

pytestmark = pytest.mark.anyio


async def run(shell: Shell, *arguments: str, stdin: str = "") -> Done:
    return await anyio.to_thread.run_sync(partial(shell.run, *arguments, stdin=stdin, MODEL_KEY="k3y"))


def store(shell: Shell) -> Path:
    return shell.home / "interlock.db"


@pytest.fixture
async def talk(shell: Shell) -> str:
    """The id of a stored thread of two turns."""
    model = ScriptedModel(Say("a"), Say("b"))
    async with Host(store=store(shell), model=model) as host:
        thread = await host.start_thread(name="talk")
        for text in ("one", "two"):
            await (await thread.start_turn(text)).finished()
        return thread.id


async def kill(shell: Shell, thread_id: str) -> None:
    """Leave a turn and a call of it open, as a host does that is killed."""
    item = McpToolCallItem(id="c1", server="git", tool="push", public_name="mcp__git__push", arguments={})
    from interlock.stores import open_store

    async with open_store(store(shell)) as opened:
        record = await opened.find(thread_id)
        assert record is not None
        events = (TurnStarted(turn_id="t9"), CallStarted(turn_id="t9", step_id="s", item=item))
        await opened.append(thread_id, events, after=record.last_sequence, at=record.updated_at)


async def turns(shell: Shell, thread_id: str) -> int:
    return int((await run(shell, "threads", "show", thread_id, "--json")).json["thread"]["turns"])


@requirement("HIS-2")
async def test_threads_are_found_where_the_environment_says(shell: Shell, talk: str, tmp_path: Path) -> None:
    elsewhere = partial(shell.run, MODEL_KEY="k3y", INTERLOCK_STORE=str(tmp_path / "elsewhere.db"))
    listed = await anyio.to_thread.run_sync(elsewhere, "threads", "list", "--json")
    assert listed.json == {"threads": []}
    exported = await run(shell, "threads", "export", talk)
    brought = await anyio.to_thread.run_sync(partial(elsewhere, "threads", "import", "-", stdin=exported.output))
    assert brought.status == 0
    shown = await anyio.to_thread.run_sync(elsewhere, "threads", "show", talk, "--json")
    assert shown.json["thread"]["turns"] == 2


@requirement("LIF-1")
async def test_resume_shows_what_was_interrupted(shell: Shell, talk: str) -> None:
    await kill(shell, talk)
    done = await run(shell, "threads", "resume", talk[:20])
    assert done.status == 0
    assert "3 turns: the last one was interrupted" in done.errors
    assert f"interlock exec --thread {talk} PROMPT" in done.errors
    assert "c1" in done.output
    assert "whether it took effect is unknown" in done.output
    again = await run(shell, "threads", "resume", talk)
    assert (again.status, again.output) == (0, done.output)
    await run(shell, "threads", "rollback", talk)
    assert "2 turns: the last one was not interrupted" in (await run(shell, "threads", "resume", talk)).errors


@requirement("LIF-1")
async def test_resume_tells_programs_what_was_interrupted(shell: Shell, talk: str) -> None:
    await kill(shell, talk)
    assert (await run(shell, "threads", "resume", talk, "--json")).json == {
        "thread_id": talk,
        "interrupted_turn": "t9",
        "waiting_turn": None,
        "interrupted_calls": ["c1"],
        "open_questions": [],
    }


async def test_rollback_drops_the_last_turns(shell: Shell, talk: str) -> None:
    done = await run(shell, "threads", "rollback", talk)
    assert (done.status, await turns(shell, talk)) == (0, 1)
    done = await run(shell, "threads", "rollback", talk, "-n", "2")
    assert done.status == 2
    assert "it has fewer turns (1) than shall be rolled back (2)" in done.errors


async def test_show_tells_how_the_last_turn_that_counts_ended(shell: Shell) -> None:
    model = ScriptedModel(Say("a"), Fail(ModelFailed("the line went dead")))
    async with Host(store=store(shell), model=model) as host:
        thread = await host.start_thread()
        for text in ("one", "two"):
            await (await thread.start_turn(text)).finished()
    failed = await run(shell, "threads", "show", thread.id)
    assert (failed.status, failed.output.splitlines()[-1]) == (0, "(no message)")
    assert f"thread {thread.id}, 2 turns, updated" in failed.errors
    assert failed.errors.endswith("the last turn failed: the line went dead\n")
    await kill(shell, thread.id)
    assert "the last turn has not ended" in (await run(shell, "threads", "show", thread.id)).errors
    assert "2 turns now" in (await run(shell, "threads", "rollback", thread.id)).errors  # which ends it first
    assert "1 turn now" in (await run(shell, "threads", "rollback", thread.id)).errors
    rest = await run(shell, "threads", "show", thread.id)
    assert rest.output.splitlines()[-1] == "a"
    assert rest.errors.count("\n") == rest.errors.count("thread ") + rest.errors.count("no tool was called")


async def test_fork_prints_the_id_of_the_new_thread(shell: Shell, talk: str) -> None:
    fork = (await run(shell, "threads", "fork", talk)).output.strip()
    assert await turns(shell, fork) == 2
    first = (await run(shell, "threads", "show", talk, "--json")).json["events"][1]["turn_id"]
    shorter = (await run(shell, "threads", "fork", talk, "--turn", first)).output.strip()
    assert await turns(shell, shorter) == 1
    assert (await run(shell, "threads", "fork", talk, "--turn", "x")).status == 2


async def test_compact_prints_the_summary(shell: Shell, talk: str) -> None:
    async with ScriptedEndpoint(Say("in short")) as endpoint:
        shell.configure(
            'model = "scripted"\nmodel_provider = "local"\n',
            f'[model_providers.local]\nbase_url = "{endpoint.base_url}"\nenv_key = "MODEL_KEY"\n',
        )
        done = await run(shell, "threads", "compact", talk)
    assert (done.status, done.output) == (0, "in short\n")
    events = (await run(shell, "threads", "show", talk, "--json")).json["events"]
    assert (events[-1]["type"], events[-1]["summary"]) == ("thread_compacted", "in short")


async def test_what_export_writes_import_takes(shell: Shell, talk: str) -> None:
    file = shell.folder / "talk.jsonl"
    assert (await run(shell, "threads", "export", talk, str(file))).status == 0
    assert (await run(shell, "threads", "export", talk, str(file))).status == 2
    written = await run(shell, "threads", "export", talk)
    assert written.output == file.read_text(encoding="utf-8")
    assert "is stored already" in (await run(shell, "threads", "import", str(file))).errors
    copy = (await run(shell, "threads", "import", "-", "--new", stdin=written.output)).output.strip()
    assert await turns(shell, copy) == 2
    assert (await run(shell, "threads", "delete", talk, "--yes")).status == 0
    assert (await run(shell, "threads", "import", str(file))).output.strip() == talk
    absent = await run(shell, "threads", "import", str(shell.folder / "nothing"))
    assert (absent.status, "nothing: no such file or directory; check the path" in absent.errors) == (2, True)


async def test_delete_asks_first_and_only_at_a_terminal(shell: Shell, talk: str) -> None:
    refused = await run(shell, "threads", "delete", talk)
    assert refused.status == 2
    assert "use --yes" in refused.errors
    seen = await anyio.to_thread.run_sync(partial(shell.run_at_terminal, "threads", "delete", talk, typed="n\n"))
    assert "(talk) for ever?" in seen
    assert await turns(shell, talk) == 2
    await anyio.to_thread.run_sync(partial(shell.run_at_terminal, "threads", "delete", talk, typed="y\n"))
    assert (await run(shell, "threads", "show", talk)).status == 2


async def test_an_archived_thread_is_marked_in_the_list(shell: Shell, talk: str) -> None:
    await run(shell, "threads", "archive", talk)
    assert "(archived) talk" in (await run(shell, "threads", "list")).output
    await run(shell, "threads", "archive", talk, "--undo")
    assert "(archived)" not in (await run(shell, "threads", "list")).output


@pytest.mark.parametrize("command", ["resume", "rollback", "fork", "export", "archive", "delete", "show"])
async def test_a_thread_that_is_not_there_is_said_to_be_not_there(shell: Shell, command: str) -> None:
    done = await run(shell, "threads", command, "nobody")
    assert done.status == 2
    assert "there is no thread 'nobody'" in done.errors


@requirement("MEM-5")
async def test_memory_usage_shows_how_often_threads_were_cited(shell: Shell, talk: str) -> None:
    assert (await run(shell, "memory", "usage", "--json")).json == {"uses": []}
    cited = f"yes<oai-mem-citation><thread_ids>\n{talk}\n</thread_ids></oai-mem-citation>"
    async with Host(store=store(shell), model=ScriptedModel(Say(cited))) as host:
        await (await (await host.start_thread()).start_turn("?")).finished()
    (use,) = (await run(shell, "memory", "usage", "--json")).json["uses"]
    assert (use["thread_id"], use["uses"]) == (talk, 1)
    assert "talk" in (await run(shell, "memory", "usage")).output


async def test_every_change_of_a_thread_is_told_to_programs_too(shell: Shell, talk: str) -> None:
    async def told(*arguments: str, stdin: str = "") -> dict[str, Any]:
        done = await run(shell, "threads", *arguments, "--json", stdin=stdin)
        assert done.status == 0, done
        return dict(done.json)

    fork = await told("fork", talk)
    assert set(fork) == {"thread_id"}
    assert await told("rollback", talk) == {"thread_id": talk, "turns": 1}
    assert await told("archive", talk) == {"thread_id": talk, "archived": True}
    assert await told("archive", talk, "--undo") == {"thread_id": talk, "archived": False}
    file = str(shell.folder / "thread.jsonl")
    assert await told("export", talk, file) == {"thread_id": talk, "file": file}
    assert await told("delete", talk, "--yes") == {"thread_id": talk, "deleted": True}
    assert await told("import", file) == {"thread_id": talk}
