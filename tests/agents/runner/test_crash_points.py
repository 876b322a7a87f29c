"""A crash point does what the environment asks of it, at the step and the hit that it names, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from checkpoints import crash_points
from tests.factories import unique

Wish = Callable[[str], None]


@pytest.fixture
def wish(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wish]:
    """Return wish(text): what HOLDPOINT_CRASH says from now on; the hits are counted anew."""
    crash_points._hits.clear()
    yield lambda text: monkeypatch.setenv("HOLDPOINT_CRASH", text)
    connection.close()


def test_a_wish_names_a_point_a_hit_and_a_step_and_without_one_a_point_is_passed(wish: Wish) -> None:
    wish("")
    crash_points.point("after_save", "pay")
    assert not crash_points._hits, "nothing is counted that nobody wished for"
    wish("after_save:fail:2")
    crash_points.point("before_save", "pay")
    crash_points.point("after_save", "pay")
    with pytest.raises(RuntimeError, match="a crash that was asked for"):
        crash_points.point("after_save", "reply")
    crash_points.point("after_save", "pay")
    wish("after_save@pay:raise:2")
    for step in ("pay", "reply", "propose"):
        crash_points.point("after_save", step)
    with pytest.raises(crash_points.Crashed):
        crash_points.point("after_save", "pay")


def test_a_cut_after_a_statement_leaves_it_done_and_the_connection_lost(wish: Wish) -> None:
    name = unique("cut")
    wish("after_save:cut")
    Group.objects.create(name=name)
    with pytest.raises(OperationalError, match="closed the connection"):
        crash_points.point("after_save")
    with pytest.raises(OperationalError):
        Group.objects.count()
    connection.close()
    assert Group.objects.filter(name=name).exists()


def test_a_cut_in_a_transaction_loses_the_answer_to_its_commit(wish: Wish) -> None:
    first, second, told = unique("cut"), unique("cut"), list[str]()
    wish("after_save:cut")

    def change() -> None:
        with transaction.atomic():
            Group.objects.create(name=first)
            transaction.on_commit(lambda: told.append("committed"))
            crash_points.point("after_save")
            Group.objects.create(name=second)

    with pytest.raises(OperationalError, match="closed the connection"):
        change()
    assert Group.objects.filter(name__in=[first, second]).count() == 2
    assert told == []  # nobody here knows that it was committed
    with transaction.atomic():  # the next one is none of its business
        Group.objects.create(name=unique("cut"))


def test_a_transaction_that_is_rolled_back_is_not_cut_and_neither_is_the_next(wish: Wish) -> None:
    wish("after_save:cut")

    def change() -> None:
        with transaction.atomic():
            crash_points.point("after_save")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        change()
    with transaction.atomic():
        Group.objects.create(name=unique("cut"))
