"""A transaction wakes the tailers once, after its commit and after the worker whose work it made."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from django.db import transaction

from checkpoints.events import wakeup
from checkpoints.events.wakeup import ring_after_commit


@pytest.fixture
def woken() -> Iterator[list[str]]:
    """Return the names of those who are woken, in order."""
    names: list[str] = []
    with mock.patch.object(wakeup, "publish", side_effect=lambda *_: names.append("pages")):
        yield names


def test_several_events_of_a_transaction_ring_once_and_after_the_worker(woken: list[str]) -> None:
    with transaction.atomic():
        ring_after_commit()
        transaction.on_commit(lambda: woken.append("worker"))
        ring_after_commit()
        assert woken == []
    assert woken == ["worker", "pages"]


def test_each_transaction_rings_for_itself(woken: list[str]) -> None:
    for _ in range(2):
        with transaction.atomic():
            ring_after_commit()
    assert woken == ["pages", "pages"]


def test_a_transaction_that_is_rolled_back_rings_nobody(woken: list[str]) -> None:
    with transaction.atomic():
        ring_after_commit()
        transaction.set_rollback(True)
    assert woken == []


def test_a_ring_outlives_the_rollback_of_a_later_savepoint(woken: list[str]) -> None:
    with transaction.atomic():
        ring_after_commit()
        with transaction.atomic():
            ring_after_commit()
            transaction.set_rollback(True)
    assert woken == ["pages"]


def test_outside_of_a_transaction_it_rings_at_once(woken: list[str]) -> None:
    ring_after_commit()
    assert woken == ["pages"]
