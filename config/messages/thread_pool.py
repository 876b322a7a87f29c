"""Celery's pool of threads, which tells the worker's loop at once when a thread is free.

A worker takes no message while all are busy, and its loop would look again after a second.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import Any

from celery.concurrency import thread


class ThreadPool(thread.TaskPool):
    """The pool `threads`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.freed, self.told = os.pipe()
        os.set_blocking(self.freed, False)
        os.set_blocking(self.told, False)

    def register_with_event_loop(self, loop: Any) -> None:
        """Have the loop go round whenever a thread is free."""
        loop.add_reader(self.freed, os.read, self.freed, 4096)

    def on_apply(self, *args: Any, **options: Any) -> Any:
        """Have a thread run a task."""
        result: Any = super().on_apply(*args, **options)
        result.f.add_done_callback(self._tell)
        return result

    def _tell(self, ended: Future[Any]) -> None:
        try:
            os.write(self.told, b".")
        except BlockingIOError:  # full: the loop goes round anyway
            return
