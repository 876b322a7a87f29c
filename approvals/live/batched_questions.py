"""Answers questions of many open pages together.

While one batch is answered the next one gathers: a lone question waits for nothing, and a thousand pages that come back
at once after a web process died cost a few statements instead of some thousand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import InterfaceError, OperationalError

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

MOST = 200  # questions in a batch, so that the first of many are answered before the last are read


class Batched(Generic[Asked, Answer]):
    """`await batched(question)`; `answer` gives, on a thread with a database, the answers to a list of them in order.

    Where `answer` fails for a batch, each of it is asked by itself: an error is raised to whom it is about alone, or to
    all where the database is away.
    """

    def __init__(self, answer: Callable[[list[Asked]], list[Answer]]) -> None:
        self._answer = answer
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, list[tuple[Asked, asyncio.Future[Answer]]]]
        self._waiting = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, asked: Asked) -> Answer:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        waiting = self._waiting.get(loop)
        if waiting is None:
            self._waiting[loop] = waiting = []
            task = loop.create_task(self._run(loop, waiting))
            self._tasks.add(task)  # the loop itself holds its tasks weakly
            task.add_done_callback(self._tasks.discard)
        waiting.append((asked, future))
        return await future

    async def _run(self, loop: asyncio.AbstractEventLoop, waiting: list[tuple[Asked, asyncio.Future[Answer]]]) -> None:
        try:
            while waiting:
                batch = waiting[:MOST]
                del waiting[:MOST]
                await self._settle(batch)
        finally:
            del self._waiting[loop]
            for _, future in waiting:
                future.cancel()

    async def _settle(self, batch: list[tuple[Asked, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await database_sync_to_async(self._answer)([asked for asked, _ in batch])
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - told to who asked
            if len(batch) > 1 and not isinstance(error, OperationalError | InterfaceError):
                for each in batch:
                    await self._settle([each])
                return
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():  # otherwise the page is gone
                future.set_result(answer)
