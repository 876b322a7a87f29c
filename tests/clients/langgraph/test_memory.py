"""What a saver remembers of its threads, while several of the program's threads use it at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from holdpoint.langgraph.memory import Memory, known_state

STATE = known_state({"a": 1}, {"a": [1]})
BUSY = [f"busy {number}" for number in range(4)]


@pytest.fixture
def restless() -> Iterator[None]:
    """Let threads interrupt one another as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.long
@pytest.mark.usefixtures("restless")
def test_new_threads_come_while_others_are_saved() -> None:
    memory, over, faults = Memory(), threading.Event(), list[Exception]()

    def saving(name: str) -> None:
        known, number = memory.known_thread(name, ""), 0
        while not over.is_set():
            number += 1
            try:
                known.know(str(number % 6), STATE)
                known.is_newest(str(number % 6), number)
                known.asked_for(str((number + 1) % 6))
            except Exception as error:  # noqa: BLE001 - a thread would only print it
                faults.append(error)
                return

    threads = [threading.Thread(target=saving, args=(name,)) for name in BUSY]
    for each in threads:
        each.start()
    try:
        for number in range(1000):
            memory.known_thread(f"chat {number}", "")
            for name in BUSY:
                memory.known_thread(name, "")
    finally:
        over.set()
        for each in threads:
            each.join()
    assert faults == []
