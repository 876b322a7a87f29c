"""A prepared query reads what its queryset reads, and a prepared insert writes what the ORM writes."""

from __future__ import annotations

import secrets

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Count

from checkpoints.models import Hold, Plan, Run
from checkpoints.postgresql.prepared import PreparedQuery, insert
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


def test_an_inserted_row_is_the_one_that_the_orm_would_write() -> None:
    run = make_run()
    columns = {"run": run, "checkpoint": run.head, "kind": "gate", "reason": "asks", "by": "x"}
    mine = Hold(**columns, subject="gate:1")
    insert(mine)
    theirs = Hold.objects.create(**columns, subject="gate:2")
    own = {"_state": None, "id": 0, "created_at": 0, "subject": ""}
    written, expected = (vars(Hold.objects.get(pk=each.pk)) | own for each in (mine, theirs))
    assert written == expected
    assert (mine.freed_by, mine.created_at) == ("", Hold.objects.get(pk=mine.pk).created_at)
    assert not mine._state.adding


def test_a_refused_insert_raises_as_the_orm_does() -> None:
    name = f"robo-{secrets.token_hex(4)}"
    insert(Plan(agent=name, version="1", digest=b"1", body=b"{}"))
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(Plan(agent=name, version="1", digest=b"1", body=b"{}"))
    assert Plan.objects.filter(agent=name).count() == 1


def test_a_statement_in_a_broken_transaction_is_refused() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        RUNS("no number")


def test_a_list_in_a_place_matches_each_of_its_items() -> None:
    query = PreparedQuery(lambda runs: Run.objects.filter(pk__any_of=runs).order_by("pk"), places=1)
    run, other, third = make_run(), make_run(), make_run()
    assert [each.pk for each in query([third.pk, run.pk])] == [run.pk, third.pk]
    assert query([]) == []
    assert other.pk not in {each.pk for each in query([run.pk])}
