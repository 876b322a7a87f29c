"""Questions that come while others are answered are answered together, and none is forgotten."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.db import OperationalError

from approvals.live import batched_questions
from approvals.live.batched_questions import Batched


class Slow:
    """Answers with the tenfold; each batch waits for its turn."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.turns = threading.Semaphore(0)

    def answer(self, asked: list[int]) -> list[int]:
        self.batches.append(asked)
        assert self.turns.acquire(timeout=30)
        if 13 in asked:
            raise ValueError("thirteen")
        return [each * 10 for each in asked]


async def asked_by(slow: Slow, batches: int) -> None:
    """Wait until so many batches have been begun."""
    async with asyncio.timeout(30):
        while len(slow.batches) < batches:
            await asyncio.sleep(0)


async def test_what_is_asked_meanwhile_is_answered_in_one_batch_each_with_its_own() -> None:
    slow = Slow()
    ask = Batched(slow.answer)
    first = asyncio.create_task(ask(1))
    await asked_by(slow, 1)
    later = [asyncio.create_task(ask(n)) for n in (2, 3, 4)]
    await asyncio.sleep(0)
    slow.turns.release(2)
    assert await asyncio.gather(first, *later) == [10, 20, 30, 40]
    assert slow.batches == [[1], [2, 3, 4]]


async def test_a_storm_is_answered_in_batches_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_questions, "MOST", 2)
    slow = Slow()
    slow.turns.release(9)
    ask = Batched(slow.answer)
    assert await asyncio.gather(*(ask(n) for n in range(5))) == [0, 10, 20, 30, 40]
    assert [len(batch) for batch in slow.batches] == [2, 2, 1]


async def test_what_fails_is_told_to_whom_it_is_about_alone() -> None:
    """One page that slept through a restore closed the sockets of two hundred others."""
    slow = Slow()
    slow.turns.release(9)
    ask = Batched(slow.answer)
    told = await asyncio.gather(ask(13), ask(1), return_exceptions=True)
    assert [str(each) for each in told] == ["thirteen", "10"]
    assert await ask(2) == 20


async def test_where_the_database_is_away_nobody_is_asked_again() -> None:
    slow = Slow()
    slow.turns.release(9)

    def away(asked: list[int]) -> list[int]:
        slow.answer(asked)
        raise OperationalError("away")

    told = await asyncio.gather(*map(Batched(away), (1, 2)), return_exceptions=True)
    assert [str(each) for each in told] == ["away", "away"]
    assert slow.batches == [[1, 2]]


async def test_a_page_that_goes_away_takes_no_other_with_it() -> None:
    slow = Slow()
    ask = Batched(slow.answer)
    gone, stays = asyncio.create_task(ask(1)), asyncio.create_task(ask(2))
    await asked_by(slow, 1)
    waits = asyncio.create_task(ask(3))
    await asyncio.sleep(0)
    gone.cancel()
    slow.turns.release(9)
    assert [await stays, await waits] == [20, 30]
    with pytest.raises(asyncio.CancelledError):
        await gone


def test_another_loop_is_served_after_the_first_has_ended_in_the_middle() -> None:
    slow = Slow()
    ask = Batched(slow.answer)

    async def cut_off() -> None:
        task = asyncio.create_task(ask(1))
        await asked_by(slow, 1)
        slow.turns.release(1)
        del task

    async def whole() -> int:
        return await ask(4)

    asyncio.run(cut_off())
    slow.turns.release(9)
    assert asyncio.run(whole()) == 40
