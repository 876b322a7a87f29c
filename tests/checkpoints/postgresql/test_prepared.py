"""A prepared query reads what its queryset reads."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction
from django.db.models import Count

from checkpoints.models import Run
from checkpoints.postgresql.prepared import PreparedQuery
from tests.factories.stored_runs import make_run
from tests.harness.sent_statements import sent

RUNS = PreparedQuery(lambda run: Run.objects.select_related("plan", "started_by").filter(pk=run), places=1)


def test_it_reads_the_instances_of_its_queryset_with_what_is_joined() -> None:
    run = make_run()
    (found,) = RUNS(run.pk)
    expected = Run.objects.select_related("plan", "started_by").get(pk=run.pk)
    assert vars(found) | {"_state": None} == vars(expected) | {"_state": None}
    with sent() as statements:
        assert (found.plan, found.started_by) == (expected.plan, expected.started_by)
    assert statements == []
    assert not found._state.adding


def test_each_call_reads_anew_and_with_its_own_parameters() -> None:
    run, other = make_run(), make_run()
    assert [each.pk for each in RUNS(run.pk) + RUNS(other.pk)] == [run.pk, other.pk]
    Run.objects.filter(pk=run.pk).update(title="Another title")
    assert RUNS(run.pk)[0].title == "Another title"
    assert RUNS(0) == []


def test_constants_and_percent_signs_of_the_queryset_stay_as_they_are() -> None:
    run = make_run()
    Run.objects.filter(pk=run.pk).update(title="100 % it's")
    named = PreparedQuery(lambda pk: Run.objects.filter(pk=pk, title="100 % it's", reason__contains="%"), places=1)
    assert named(run.pk) == []
    Run.objects.filter(pk=run.pk).update(reason="a % b")
    assert [each.pk for each in named(run.pk)] == [run.pk]


def test_a_queryset_with_computed_columns_is_refused() -> None:
    with pytest.raises(TypeError, match="Read Run by its queryset"):
        PreparedQuery(lambda pk: Run.objects.filter(pk=pk).annotate(holding=Count("holds")), places=1)(1)


def test_a_statement_in_a_broken_transaction_is_refused() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        RUNS("no number")


def test_a_list_in_a_place_matches_each_of_its_items() -> None:
    query = PreparedQuery(lambda runs: Run.objects.filter(pk__any_of=runs).order_by("pk"), places=1)
    run, other, third = make_run(), make_run(), make_run()
    assert [each.pk for each in query([third.pk, run.pk])] == [run.pk, third.pk]
    assert query([]) == []
    assert other.pk not in {each.pk for each in query([run.pk])}
