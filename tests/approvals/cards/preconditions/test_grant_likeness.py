"""Grants that the release before wrote are found as done before: for a month after an update nothing warned of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection

from approvals.consequences.done_before import done_before
from approvals.gates import grant_likeness
from approvals.models import Grant
from tests.factories import ann, make_team
from tests.harness.altered_rows import owner

from .test_done_before import asking, paid
from .watched_world import World

NAMES = ("same_arguments", "same_key", "same_resource")


@pytest.fixture(autouse=True)
def _by_the_owner() -> Iterator[None]:
    """As `config.migrate` works; the application may not change these rows."""
    with owner() as made:
        tables, role = "approvals_grant", connection.settings_dict["USER"]
        made.execute(f'GRANT UPDATE ON {tables} TO "{role}"'.encode())
        try:
            yield
        finally:
            made.execute(f'REVOKE UPDATE ON {tables} FROM "{role}"'.encode())


def as_before() -> dict[int, tuple[str, ...]]:
    """Take all grants back to how the release before wrote them; what they had, by their numbers."""
    had = {row[0]: row[1:] for row in Grant.objects.values_list("pk", *NAMES)}
    Grant.objects.update(**dict.fromkeys(NAMES, ""))
    return had


def test_they_get_the_digests_that_they_would_have_got(world: World) -> None:
    team = make_team()
    before = paid(world, team)
    had = as_before()
    gate = asking(world, team)
    assert done_before([gate], reader=ann(team)) == {}
    assert grant_likeness.fill_in() == len(had) > 0
    assert {row[0]: row[1:] for row in Grant.objects.filter(pk__in=had).values_list("pk", *NAMES)} == had
    [found] = done_before([gate], reader=ann(team))[gate.pk]
    assert (found.how, found.gate) == ("arguments", before.pk)
    assert grant_likeness.fill_in() == sum(not any(each) for each in had.values())


def test_what_is_too_long_ago_to_count_is_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    paid(world, make_team())
    as_before()
    monkeypatch.setattr(grant_likeness, "LATELY", timedelta(0))
    assert grant_likeness.fill_in() == 0
