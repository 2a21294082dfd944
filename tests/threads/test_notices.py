"""Notices: bounded, in order, and honest about what was lost."""

import gc

import anyio
import anyio.lowlevel
import pytest

from interlock.threads.notices import Notices, NoticeStream
from interlock.vocabulary.notice import LaggedNotice, Notice, WarningNotice
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


def warning(number: int) -> WarningNotice:
    return WarningNotice(message=str(number))


async def read(stream: NoticeStream) -> list[Notice]:
    return [notice async for notice in stream]


async def test_a_subscriber_gets_what_is_published_after_it_came_until_the_end() -> None:
    notices = Notices()
    notices.publish(warning(0))
    stream = notices.subscribe()
    notices.publish(warning(1))
    notices.publish(warning(2))
    notices.close()

    assert await read(stream) == [warning(1), warning(2)]
    assert await read(notices.subscribe()) == []


@requirement("HIS-6")
async def test_a_slow_subscriber_is_told_how_many_it_missed_and_slows_nobody() -> None:
    notices = Notices()
    slow, quick = notices.subscribe(limit=2), notices.subscribe()
    for number in range(5):
        notices.publish(warning(number))
    assert [await anext(slow), await anext(slow), await anext(slow)] == [warning(0), warning(1), LaggedNotice(missed=3)]

    notices.publish(warning(5))
    notices.close()
    assert await read(slow) == [warning(5)]
    assert await read(quick) == [warning(number) for number in range(6)]


async def test_a_waiting_subscriber_is_woken() -> None:
    notices, seen = Notices(), list[Notice]()
    stream = notices.subscribe()

    async def listen() -> None:
        async for notice in stream:
            seen.append(notice)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await anyio.lowlevel.checkpoint()
            notices.publish(warning(1))
            await anyio.lowlevel.checkpoint()
            notices.close()
    assert seen == [warning(1)]


async def test_a_stream_that_nobody_holds_is_forgotten() -> None:
    notices = Notices()
    kept, dropped = notices.subscribe(), notices.subscribe()
    del dropped
    gc.collect()

    assert repr(notices) == "<Notices subscribers=1>"
    assert repr(kept) == "<NoticeStream waiting=0 missed=0>"
