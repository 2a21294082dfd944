"""From words to a store."""

from pathlib import Path

import anyio
import pytest

from interlock.stores import open_store
from interlock.stores.postgres_failures import shown
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import ThreadStarted

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("prefix", ["", "sqlite:///"])
async def test_a_path_and_an_sqlite_url_open_the_same_file(tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "100% mine" / "interlock.db"
    shown_path = str(path) if not prefix else str(path).replace("%", "%25")
    async with open_store(prefix + shown_path) as store:
        assert repr(store) == f"<SqliteStore {path}>"
    assert path.exists()


async def test_a_relative_sqlite_url_starts_at_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_store("sqlite:///interlock.db"):
        pass
    assert (tmp_path / "interlock.db").exists()


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("mysql://host/db", "scheme 'mysql'"),
        ("http://host", "scheme 'http'"),
        ("sqlite://", "without a file name"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite://host/file.db", "without a file name"),
    ],
)
def test_other_words_are_refused(place: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        open_store(place)


async def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(StorageFailed, match=r"cannot open the database 127.0.0.1:1/threads: ") as failed:
        async with open_store("postgresql://me:hunter2@127.0.0.1:1/threads"):
            pass
    assert "hunter2" not in failed.value.message


async def test_a_malformed_url_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="its URL is malformed"):
        async with open_store("postgresql://host:port/db"):
            pass


def test_a_database_is_shown_by_its_place() -> None:
    assert shown("postgresql://me:hun@ter2@db.example:5432/threads?sslmode=require") == "db.example:5432/threads"


async def test_many_stores_can_be_made_side_by_side(tmp_path: Path) -> None:
    async def make(number: int) -> None:
        async with open_store(tmp_path / f"{number}.db") as store:
            await store.append("thread", (ThreadStarted(),), after=0, at=1)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(make, number)
