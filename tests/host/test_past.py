"""What can be done with the past of a Thread: rolled back, compacted, forked, exported, put away, forgotten."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock import Host, InterlockError, InvalidRequest, ModelFailed, ServerConfig, StorageFailed
from interlock.host import arriving
from interlock.stores.sqlite import SqliteStore
from interlock.testing import Call, Fail, Gate, Say, ScriptedModel, Wait
from interlock.threads.compaction import INTRODUCTION, REQUEST
from interlock.threads.thread import Thread
from interlock.vocabulary.conversation import AssistantEntry, ModelRequest, TextPart, Usage, UserEntry
from interlock.vocabulary.event import StoredEvent, ThreadCompacted
from interlock.vocabulary.notice import WarningNotice
from interlock.vocabulary.thread import ThreadState
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]


def user(text: str) -> UserEntry:
    return UserEntry(content=(TextPart(text=text),))


async def say(thread: Thread, text: str, **settings: Any) -> None:
    turn = await thread.start_turn(text, **settings)
    await turn.finished()


def talk(*answers: str) -> ScriptedModel:
    return ScriptedModel(*(Say(answer) for answer in answers))


def same(state: ThreadState) -> tuple[object, ...]:
    """What a rollback must give back."""
    return (state.turns, state.entries, state.open_turn, state.unanswered)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "interlock.db"


@requirement("HIS-3")
async def test_a_rollback_drops_turns_and_leaves_what_was_before(place: Path) -> None:
    async with Host(store=place, model=talk("a", "b", "c", "d")) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        before = thread.state
        await say(thread, "two")
        await say(thread, "three")
        await thread.rollback(2)
        assert same(thread.state) == same(before)
        (record,) = await host.threads()
        assert record.turns == 1
        await say(thread, "four")
        assert thread.state.entries[-2:] == (user("four"), AssistantEntry(text="d"))
        whole = thread.state
    async with Host(store=place) as host:
        assert (await host.resume_thread(thread.id)).state == whole


@requirement("HIS-3")
@pytest.mark.parametrize("turns", [0, -1, 2])
async def test_a_rollback_of_turns_that_are_not_there_is_refused(place: Path, turns: int) -> None:
    async with Host(store=place, model=talk("a")) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        before = thread.state
        with pytest.raises(InvalidRequest, match=r"it has fewer turns \(1\) than shall be rolled back"):
            await thread.rollback(turns)
        assert thread.state == before


@requirement("HIS-3")
async def test_a_rollback_is_refused_while_a_turn_runs(place: Path) -> None:
    gate = Gate()
    async with Host(store=place, model=ScriptedModel([Wait(gate), Say("a")])) as host:
        thread = await host.start_thread()
        turn = await thread.start_turn("one")
        with pytest.raises(InvalidRequest, match=r"cannot roll back thread .*: turn .* is running"):
            await thread.rollback(1)
        gate.open()
        await turn.finished()
        await thread.rollback(1)
        assert thread.state.turns == ()


@requirement("HIS-4")
async def test_a_compaction_gives_the_model_its_own_summary_and_keeps_the_items(place: Path) -> None:
    model = talk("a", "b", "all of it in short", "c")
    async with Host(store=place, model=model) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        await say(thread, "two")
        items = thread.items
        assert await thread.compact() == "all of it in short"
        assert thread.items == items
        assert thread.state.entries == (user(INTRODUCTION + "all of it in short"),)
        assert model.requests[2].entries[-1] == user(REQUEST)
        assert model.requests[2].tools == ()
        await say(thread, "three")
        assert model.requests[3].entries == (user(INTRODUCTION + "all of it in short"), user("three"))
        whole = thread.state
    async with Host(store=place) as host:
        assert (await host.resume_thread(thread.id)).state == whole
    assert whole.usage == Usage(input_tokens=40, output_tokens=20)


@requirement("HIS-3", "HIS-4")
async def test_rolling_back_behind_a_compaction_brings_the_whole_history_back(place: Path) -> None:
    async with Host(store=place, model=talk("a", "b", "short", "c")) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        first = thread.state
        await say(thread, "two")
        await thread.compact()
        compacted = thread.state
        await say(thread, "three")
        await thread.rollback(1)
        assert same(thread.state) == same(compacted)
        await thread.rollback(1)
        assert same(thread.state) == same(first)


@requirement("HIS-4")
@pytest.mark.parametrize("answer", [[Fail()], [Say(" \n")], [Call("mcp__a__b")]])
async def test_a_model_that_gives_no_summary_changes_nothing(place: Path, answer: Any) -> None:
    async with Host(store=place, model=ScriptedModel(Say("a"), answer, Say("b"))) as host:
        thread = await host.start_thread()
        with pytest.raises(InvalidRequest, match="has no history yet"):
            await thread.compact()
        await say(thread, "one")
        before = thread.state
        with pytest.raises(ModelFailed):
            await thread.compact()
        assert thread.state == before
        await say(thread, "two")


@requirement("HIS-4")
async def test_nothing_else_begins_while_the_model_writes_its_summary(place: Path) -> None:
    asked, gate = anyio.Event(), Gate()

    def summary(_: ModelRequest) -> list[Any]:
        asked.set()
        return [Wait(gate), Say("short")]

    async with Host(store=place, model=ScriptedModel(Say("a"), summary, Say("b"))) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.compact)
            with anyio.fail_after(60):
                await asked.wait()
            for begin in (lambda: thread.start_turn("two"), thread.compact, lambda: thread.rollback(1)):
                with pytest.raises(InvalidRequest, match="is being compacted"):
                    await begin()
            gate.open()
        await say(thread, "two")


@requirement("HIS-4")
async def test_closing_a_thread_does_not_wait_for_a_summary(place: Path) -> None:
    asked = anyio.Event()

    def summary(_: ModelRequest) -> list[Any]:
        asked.set()
        return [Wait(Gate())]

    async with Host(store=place, model=ScriptedModel(Say("a"), summary)) as host:
        thread = await host.start_thread()
        await say(thread, "one")

        async def compact() -> None:
            with pytest.raises(InvalidRequest, match="was closed before"):
                await thread.compact()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compact)
            with anyio.fail_after(60):
                await asked.wait()
                await thread.close()


@requirement("HIS-4")
async def test_a_history_over_the_budget_is_compacted_before_the_next_sampling(place: Path) -> None:
    model = ScriptedModel(Call("nothing"), Say("short"), Say("done"), Say("fine"), usage=Usage(input_tokens=90))
    async with Host(store=place, model=model, auto_compact_token_limit=80) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        assert [type(entry) for entry in model.requests[2].entries] == [UserEntry, UserEntry]
        assert model.requests[2].entries == (user("one"), user(INTRODUCTION + "short"))
        assert [type(item).__name__ for item in thread.items] == [
            "UserMessageItem",
            "McpToolCallItem",
            "AgentMessageItem",
        ]
        assert [compaction.place for compaction in thread.state.turns[0].compactions] == [2]
        assert thread.state.turns[0].usage.input_tokens == 270
        events = [stored.event async for stored in host.events(thread.id)]
        (fact,) = [event for event in events if isinstance(event, ThreadCompacted)]
        assert fact.turn_id == thread.state.turns[0].turn_id
        before = thread.state.turns
        await thread.rollback(1)
        assert (thread.state.entries, thread.state.turns, len(before)) == ((), (), 1)


@requirement("HIS-4")
async def test_a_turn_goes_on_where_its_history_could_not_be_compacted(place: Path) -> None:
    model = ScriptedModel(Call("nothing"), Fail(), Say("done"), usage=Usage(input_tokens=90))
    async with Host(store=place, model=model, auto_compact_token_limit=80) as host:
        thread = await host.start_thread()
        notices = thread.notices()
        turn = await thread.start_turn("one")
        assert (await turn.finished()).last_message == "done"
        notices.close()
        assert [n.message for n in [n async for n in notices] if isinstance(n, WarningNotice)] == [
            "the conversation was not compacted: the script lets this sampling fail"
        ]


@requirement("HIS-1")
async def test_a_fork_has_the_turns_up_to_its_place_and_goes_its_own_way(place: Path) -> None:
    async with Host(store=place, model=talk("a", "b", "c", "d")) as host:
        source = await host.start_thread(name="talk")
        await say(source, "one")
        first = source.state
        await say(source, "two")
        fork = await host.fork_thread(source.id, first.turns[0].turn_id)
        whole = await host.fork_thread(source.id)
        assert (fork.state.turns, fork.state.entries) == (first.turns, first.entries)
        assert (whole.state.turns, whole.state.entries) == (source.state.turns, source.state.entries)
        assert (fork.state.name, fork.state.forked_from) == ("talk", source.id)
        await say(fork, "three")
        assert len(source.state.turns) == 2
        assert fork.state.entries[-1] == AssistantEntry(text="c")
        records = {record.thread_id: record for record in await host.threads()}
        assert [records[t.id].turns for t in (source, fork, whole)] == [2, 2, 2]
        for turn in ("no such turn", ""):
            with pytest.raises(InvalidRequest, match="it has no such turn"):
                await host.fork_thread(source.id, turn)


@requirement("HIS-1")
async def test_a_thread_is_read_and_forked_from_its_checkpoint_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Host(store=place, model=talk("a", "b", "c")) as host:
        thread = await host.start_thread(name="talk")
        for text in ("one", "two", "three"):
            await say(thread, text)
        await thread.rollback(1)
        await thread.rename("told")
    async with Host(store=place) as host:
        state = await host.read_thread(thread.id)
        plain = [(await host.fork_thread(thread.id, turn)).state for turn in (None, state.turns[0].turn_id)]
        with monkeypatch.context() as patched:
            patched.setattr("interlock.history.journal.LONG_TAIL", 1)
            await (await host.resume_thread(thread.id)).close()

    read_after: list[int] = []
    read = SqliteStore.read

    def noted(store: SqliteStore, thread_id: str, *, after: int = 0) -> AsyncGenerator[StoredEvent, None]:
        read_after.append(after)
        return read(store, thread_id, after=after)

    async with Host(store=place) as host:
        with monkeypatch.context() as patched:
            patched.setattr(SqliteStore, "read", noted)
            assert await host.read_thread(thread.id) == state
            assert read_after == [state.last_sequence]
            forks = [(await host.fork_thread(thread.id, turn)).state for turn in (None, state.turns[0].turn_id)]
        for fork, expected in zip(forks, plain, strict=True):
            assert (fork.turns, fork.entries, fork.name) == (expected.turns, expected.entries, expected.name)
        records = {record.thread_id: record for record in await host.threads()}
        for fork in forks:
            assert (records[fork.thread_id].turns, records[fork.thread_id].name) == (len(fork.turns), fork.name)
        with pytest.raises(InvalidRequest, match="it has no such turn"):
            await host.fork_thread(thread.id, "no such turn")


@requirement("HIS-1", "HIS-3")
async def test_a_fork_leaves_out_a_running_turn_and_what_was_rolled_back(place: Path) -> None:
    gate = Gate()
    async with Host(store=place, model=ScriptedModel(Say("a"), Say("b"), Say("c"), [Wait(gate), Say("d")])) as host:
        source = await host.start_thread()
        await say(source, "one")
        await say(source, "two")
        dropped = source.state.turns[-1].turn_id
        await source.rollback(1)
        await say(source, "three")
        settled = source.state
        turn = await source.start_turn("four")
        fork = await host.fork_thread(source.id)
        assert same(fork.state) == same(settled)
        with pytest.raises(InvalidRequest, match="rolled back"):
            await host.fork_thread(source.id, dropped)
        gate.open()
        await turn.finished()


@requirement("HIS-3", "HIS-4")
async def test_a_compaction_can_be_a_turn_which_a_rollback_takes_back(place: Path) -> None:
    async with Host(
        store=place,
        model=ScriptedModel(Say("a"), Say("short"), Fail(ModelFailed("overloaded")), Fail(RuntimeError("odd"))),
    ) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        before = thread.state.entries
        assert await thread.compact(as_turn="summary") == "short"
        turn = thread.state.turns[-1]
        assert (turn.turn_id, turn.status, turn.usage) == ("summary", "completed", thread.state.turns[0].usage)
        assert (turn.items, [compaction.place for compaction in turn.compactions]) == ((), [0])
        assert len(thread.state.entries) == 1
        await thread.rollback(1)
        assert (thread.state.entries, len(thread.state.turns)) == (before, 1)
        with pytest.raises(ModelFailed):
            await thread.compact(as_turn="again")
        assert (thread.state.turns[-1].status, thread.state.open_turn) == ("failed", None)
        assert "overloaded" in str(thread.state.turns[-1].error)
        with pytest.raises(InvalidRequest, match="has been used before"):
            await thread.compact(as_turn="again")
        with pytest.raises(RuntimeError, match="odd"):
            await thread.compact(as_turn="third")
        assert (thread.state.turns[-1].status, thread.state.turns[-1].error) == (
            "failed",
            "the compaction broke inside the host",
        )
        assert thread.state.entries == before


@requirement("HIS-4", "TRN-1")
async def test_closing_ends_a_compaction_and_its_turn_once(place: Path) -> None:
    gate = Gate()
    async with Host(store=place, model=ScriptedModel(Say("a"), [Wait(gate), Say("never")])) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        async with anyio.create_task_group() as tasks:

            async def compact() -> None:
                with pytest.raises(InvalidRequest, match="closed before its history was compacted"):
                    await thread.compact(as_turn="summary")

            tasks.start_soon(compact)
            await gate.reached()
            with pytest.raises(InvalidRequest, match="turn summary is running"):
                await thread.start_turn("two")
            await thread.close()
        state = await host.read_thread(thread.id)
        assert [turn.status for turn in state.turns] == ["completed", "interrupted"]
        assert (state.open_turn, len(state.entries)) == (None, 2)


@requirement("HIS-8")
@pytest.mark.parametrize("what", ["resume", "archive", "fork"])
async def test_a_thread_that_another_host_deletes_meanwhile_does_not_come_back_empty(
    what: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Host(store=place, model=talk("a")) as host, Host(store=place) as another:
        thread = await host.start_thread()
        await say(thread, "one")
        await thread.close()
        find = SqliteStore.find

        async def deleted_when_found(store: SqliteStore, thread_id: str) -> Any:
            found = await find(store, thread_id)
            monkeypatch.setattr(SqliteStore, "find", find)
            await another.delete_thread(thread_id)
            return found

        monkeypatch.setattr(SqliteStore, "find", deleted_when_found)
        do: dict[str, Callable[[str], Any]] = {
            "resume": host.resume_thread,
            "archive": host.archive_thread,
            "fork": host.fork_thread,
        }
        with pytest.raises(InterlockError, match=r"no thread|not stored any more|no such turn"):
            await do[what](thread.id)
        assert await host.threads() == ()
        with pytest.raises(InvalidRequest, match="no thread"):
            await host.resume_thread(thread.id)


async def lines_of(host: Host, thread_id: str) -> list[str]:
    async with aclosing(host.export_thread(thread_id)) as lines:
        return [line async for line in lines]


async def given(lines: list[str]) -> AsyncIterator[str]:
    for line in lines:
        yield line + "\n"


async def test_an_exported_thread_is_imported_as_it_was(place: Path, tmp_path: Path) -> None:
    async with Host(store=place, model=talk("a", "short", "b")) as host:
        thread = await host.start_thread(name="talk")
        await say(thread, "one")
        await thread.compact()
        await say(thread, "two")
        await thread.rollback(1)
        lines, state = await lines_of(host, thread.id), thread.state
        with pytest.raises(StorageFailed, match="holds it"):
            await host.import_thread(given(lines))
        copy = await host.import_thread(given(lines), new=True)
        assert (await host.read_thread(copy)).turns == state.turns
        await thread.close()
        with pytest.raises(InvalidRequest, match="is stored already"):
            await host.import_thread(given(lines))
    async with Host(store=tmp_path / "other.db") as host:
        assert await host.import_thread(given(lines)) == thread.id
        assert (await host.resume_thread(thread.id)).state == state
        assert await lines_of(host, thread.id) == lines


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: [], "no lines at all"),
        (lambda lines: ["{}"], "line 1: it is no line of an export"),
        (lambda lines: ["[1]"], "line 1: it is no line of an export"),
        (lambda lines: [*lines, "nonsense"], "line 10: it is no line"),
        (lambda lines: lines[1:], "line 1: it is not event 1"),
        (lambda lines: [*lines[:2], *lines[3:]], "line 3: it is not event 3"),
        (lambda lines: [line.replace('"version":1', '"version":99') for line in lines], "has version 99"),
        (lambda lines: [*lines, lines[-1].replace('"sequence":9', '"sequence":10')], "line 10: it cannot come here"),
    ],
)
async def test_what_is_no_export_is_refused_and_leaves_nothing(
    place: Path, tmp_path: Path, change: Callable[[list[str]], list[str]], told: str
) -> None:
    async with Host(store=place, model=talk("a")) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        lines = await lines_of(host, thread.id)
    async with Host(store=tmp_path / "other.db") as host:
        with pytest.raises(InvalidRequest, match=told):
            await host.import_thread(given(change(lines)))
        assert await host.threads() == ()


@requirement("HIS-8")
async def test_nobody_finds_a_thread_that_is_still_coming_in_and_no_other_import_forgets_it(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "MAXIMUM_TOGETHER", 2)
    async with Host(store=place, model=talk("a", "b")) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        lines = await lines_of(host, thread.id)
    async with Host(store=tmp_path / "other.db") as host, Host(store=tmp_path / "other.db") as another:

        async def interrupted() -> AsyncIterator[str]:
            for line in lines[:-1]:
                yield line
            for opened in (host, another):
                assert await opened.threads() == ()
                with pytest.raises(InvalidRequest, match="no thread"):
                    await opened.resume_thread(thread.id)
                with pytest.raises(StorageFailed, match="holds it"):
                    await opened.import_thread(given(lines))
            copies.append(await another.import_thread(given(lines), new=True))
            yield lines[-1]

        copies: list[str] = []
        assert await host.import_thread(interrupted()) == thread.id
        assert await lines_of(host, thread.id) == lines
        assert {record.thread_id for record in await another.threads()} == {thread.id, *copies}


@requirement("HIS-8")
async def test_archived_threads_are_what_they_were_and_come_back(place: Path) -> None:
    async with Host(store=place, model=talk("a")) as host:
        thread = await host.start_thread()
        await say(thread, "one")
        await host.archive_thread(thread.id)
        assert [record.archived for record in await host.threads()] == [True]
        assert thread.state.archived
        fork = await host.fork_thread(thread.id)
        assert not fork.state.archived
        await thread.close()
        await host.archive_thread(thread.id, False)
        found = {record.thread_id: record.archived for record in await host.threads()}
        assert found == {thread.id: False, fork.id: False}
        with pytest.raises(InvalidRequest, match="there is no thread"):
            await host.archive_thread("nobody")


async def test_a_deleted_thread_is_closed_and_gone(place: Path) -> None:
    async with Host(store=place, model=talk("a")) as host, Host(store=place) as other:
        thread = await host.start_thread()
        await say(thread, "one")
        with pytest.raises(StorageFailed, match="holds it"):
            await other.delete_thread(thread.id)
        await host.delete_thread(thread.id)
        assert thread.closed
        assert await host.threads() == ()
        for gone in (host.resume_thread, host.read_thread, host.delete_thread):
            with pytest.raises(InvalidRequest, match="there is no thread"):
                await gone(thread.id)


@requirement("HIS-1")
async def test_what_an_application_keeps_stays_as_it_was_stored(place: Path) -> None:
    async with Host(store=place) as host:
        thread = await host.start_thread()
        value: dict[str, Any] = {"seen": [1, {"two": 2}]}
        await thread.annotate("mine", value)
        value["seen"][1]["two"] = 3
        value["seen"].append(4)
        assert thread.state == await host.read_thread(thread.id)
        assert thread.state.annotations == {"mine": {"seen": [1, {"two": 2}]}}
        deep: dict[str, Any] = {}
        for _ in range(100_000):
            deep = {"deeper": deep}
        for no_json in ({"not": {1, 2}}, {"not": float("nan")}, deep):
            with pytest.raises(InvalidRequest, match="cannot store the event"):
                await thread.annotate("mine", no_json)
        assert thread.state.annotations == {"mine": {"seen": [1, {"two": 2}]}}
