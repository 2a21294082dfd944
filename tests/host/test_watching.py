"""Hearing of changed configuration files, whatever becomes of the folders that they lie in."""

import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from interlock import Host
from interlock.host import host as host_module
from interlock.host.watching import changes
from interlock.vocabulary.notice import WarningNotice
from tests.manifest import requirement

pytestmark = [pytest.mark.anyio, requirement("CFG-6")]

PATIENCE = 60.0


class Heard:
    """Counts what is told of, and waits for the next time."""

    def __init__(self, bursts: AsyncGenerator[None, None]) -> None:
        self._bursts = bursts

    async def again(self) -> None:
        with anyio.fail_after(PATIENCE):
            await anext(self._bursts)


@asynccontextmanager
async def watching(*files: Path) -> AsyncIterator[Heard]:
    async with aclosing(changes(files, anyio.Event())) as bursts:
        heard = Heard(bursts)
        await heard.again()  # it has begun
        yield heard


def mounted(folder: Path, number: int) -> None:
    """Writes the configuration as container platforms do: links to a folder that another one takes the place of."""
    (folder / f"..{number}").mkdir()
    (folder / f"..{number}" / "config.toml").write_text(f"# {number}\n", encoding="utf-8")
    os.symlink(f"..{number}", folder / "..new")
    os.replace(folder / "..new", folder / "..data")


async def test_a_link_that_comes_to_lead_elsewhere_is_a_change_each_time(tmp_path: Path) -> None:
    mounted(tmp_path, 1)
    os.symlink("..data/config.toml", tmp_path / "config.toml")
    async with watching(tmp_path / "config.toml") as heard:
        for number in (2, 3):
            mounted(tmp_path, number)
            await heard.again()


async def test_a_folder_that_is_removed_and_comes_back_is_watched_again(tmp_path: Path) -> None:
    file = tmp_path / "home" / "config.toml"
    file.parent.mkdir()
    file.write_text("", encoding="utf-8")
    async with watching(file) as heard:
        shutil.rmtree(file.parent)
        file.parent.mkdir()
        file.write_text("# new\n", encoding="utf-8")
        await heard.again()
        for number in range(3):  # more than the removal itself may tell of
            file.write_text(f"# {number}\n", encoding="utf-8")
            await heard.again()


async def test_a_link_in_a_circle_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("", encoding="utf-8")
    async with watching(file) as heard:
        file.unlink()
        os.symlink("config.toml", file)
        await heard.again()
        file.unlink()
        file.write_text("", encoding="utf-8")
        await heard.again()


async def test_no_folder_to_watch_is_the_end_of_it(tmp_path: Path) -> None:
    assert [_ async for _ in changes([tmp_path / "none" / "config.toml"], anyio.Event())] == []


async def test_a_system_that_does_not_let_us_watch_costs_a_warning_and_not_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = anyio.Event()

    async def refused(files: object, until: object) -> AsyncGenerator[None, None]:
        await wanted.wait()
        raise OSError("no space left for watches")
        yield

    monkeypatch.setattr(host_module, "changes", refused)
    file = tmp_path / "config.toml"
    file.write_text("", encoding="utf-8")
    async with Host.open(file, store=tmp_path / "events.db", watch=True) as host:
        thread = await host.start_thread()
        notices = thread.notices()
        wanted.set()
        with anyio.fail_after(PATIENCE):
            warning = await anext(notice async for notice in notices if isinstance(notice, WarningNotice))
        assert "no longer watched, reload it by hand: no space left" in warning.message
        assert str(await host.reload()) is not None
