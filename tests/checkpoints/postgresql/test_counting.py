"""Counts stop where people stop reading them."""

from __future__ import annotations

from django.contrib.auth.models import Group

from checkpoints.models import Run
from checkpoints.postgresql.capped_count import Capped, capped, capped_each
from tests.factories import make_run, make_team
from tests.harness.sent_statements import sent


def test_a_count_says_what_there_is_up_to_its_bound() -> None:
    team = make_team()
    for _ in range(3):
        make_run(team=team)
    runs = Run.objects.filter(team=team)
    assert [str(capped(runs, most)) for most in (4, 3, 2)] == ["3", "3", "2+"]
    assert not capped(runs.filter(status="failed"))


def test_no_more_rows_are_read_than_are_told() -> None:
    with sent() as statements:
        capped(Run.objects.order_by("title"), 2)
    assert "LIMIT 3" in statements[-1]
    assert "ORDER BY" not in statements[-1]


def test_several_counts_are_one_statement_also_where_one_of_them_asks_for_nothing() -> None:
    team = make_team()
    make_run(team=team)
    asked = {
        "queued": Run.objects.filter(team=team, status="queued"),
        "never": Run.objects.none(),
        "teams": Group.objects.filter(pk=team.pk),
    }
    with sent() as statements:
        found = capped_each(asked)
    assert len(statements) == 1
    assert found == {"queued": Capped(1), "never": Capped(0), "teams": Capped(1)}
