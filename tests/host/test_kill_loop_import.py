"""An import killed after each of its writes: its Thread is whole or not there, and can be brought in again."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock import Host
from interlock.stores import exchange, open_store
from interlock.vocabulary.conversation import CallEntry
from interlock.vocabulary.event import EntriesRecorded, Event, InputRequested, QuestionAsked, ThreadStarted
from interlock.vocabulary.form import Form
from interlock.vocabulary.question import HeldRequest, Question
from tests.history.thread_events import call_started, model_said, one_call, stored, user_said
from tests.manifest import requirement
from tests.stores.postgres_server import PostgresServer

pytestmark = pytest.mark.anyio

PLACES = 12
"""More than the import makes writes."""


def waiting_thread() -> list[Event]:
    """Its last turn has a call that waits for people."""
    question = Question(
        id="q1", server="git", message="Who?", subject=Form(), turn_id="u2", call_id="c2", certainty="known"
    )
    request = HeldRequest(
        server="git",
        whereabouts="there",
        method="tools/call",
        params={"name": "log", "arguments": {}},
        keys=("a",),
        state="sealed",
    )
    return [
        ThreadStarted(name="first", model="m0"),
        *user_said("hello"),
        *one_call("c1"),
        *model_said("done"),
        *user_said("again", "u2"),
        EntriesRecorded(turn_id="u2", entries=(CallEntry(call_id="c2", name="mcp__git__log", arguments="{}"),)),
        call_started("c2", "u2"),
        InputRequested(turn_id="u2", call_id="c2", request=request, questions=(question,)),
        QuestionAsked(question=question),
    ]


LINES = [exchange.to_line(event) for event in stored(waiting_thread())]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The stores into which a Thread was imported, killed one write later each; the last one lived."""
    folder = tmp_path_factory.mktemp("killed")
    lines = folder / "thread.jsonl"
    lines.write_text("\n".join(LINES))
    if request.param == "sqlite":
        places = [str(folder / f"{number}.db") for number in range(PLACES)]
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        places = [server.new_database() for _ in range(PLACES)]
    command = [sys.executable, str(Path(__file__).parent / "kill_loop_import.py"), str(lines), *places]
    done = subprocess.run(command, check=True, timeout=250, stdout=subprocess.PIPE)
    return places[: int(done.stdout)]


async def given() -> AsyncIterator[str]:
    for line in LINES:
        yield line


@requirement("HIS-8", "QST-9")
async def test_a_killed_import_leaves_a_whole_closed_thread_or_none_that_anybody_finds(
    killed: list[str],
) -> None:
    assert len(killed) > len(LINES) // 4
    found = []
    for place in killed:
        async with Host(store=place) as host:
            records = await host.threads()
            found.append(len(records))
            for record in records:
                state = await host.read_thread(record.thread_id)
                assert (state.open_turn, state.held_calls, state.open_calls, state.open_questions) == (None, (), (), ())
                assert [turn.status for turn in state.turns] == ["completed", "interrupted"]
                assert (record.turns, record.last_sequence, record.name) == (2, state.last_sequence, "first")
                await host.delete_thread(record.thread_id)
            copy = await host.import_thread(given(), new=True)
            assert [record.thread_id for record in await host.threads()] == [copy]
        async with open_store(place) as store:
            assert await store.unlisted() == ()  # what was killed is forgotten
    assert found == [0] * (len(killed) - 2) + [1, 1]
