"""A prepared statement reads what Django's own would, for the values of this call alone."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

from django.db import connection, transaction
from django.db.models import F, Model, QuerySet
from django.db.models.functions import JSONObject

from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.prepared_rows import OneOf, ParameterPlace, PreparedRows, prepared_statement
from tests.factories import stored_runs
from tests.factories.stored_runs import begin
from tests.harness.sent_statements import sent

JOINED = (
    Run.objects.select_related("plan", "team", "started_by").annotate(shown=JSONObject(title="title")).order_by("pk")
)
RUNS = JOINED.filter(OneOf(F("pk"), ParameterPlace(1)))


def make_run(title: str) -> Run:
    run = stored_runs.make_run()
    Run.objects.filter(pk=run.pk).update(title=title)
    return run


def columns(row: Model) -> dict[str, object]:
    return {name: value for name, value in row.__dict__.items() if name != "_state"}


def test_rows_are_those_of_the_queryset_with_what_they_refer_to() -> None:
    pks = [make_run(title).pk for title in ("one", "two", "50% of 'three' \\ %s")]
    expected = list(JOINED.filter(pk__in=pks))
    with sent() as statements:
        found = PreparedRows(RUNS).run(pks)
        assert all(each.plan.agent and each.team.name for each in found)
    assert len(statements) == 1
    assert [each.pk for each in found] == pks
    for ours, theirs in zip(found, expected, strict=True):
        assert columns(ours) == columns(theirs)
        assert columns(ours.plan) == columns(theirs.plan)
        assert columns(ours.team) == columns(theirs.team)
        assert ours.started_by == theirs.started_by
        assert ours._state.adding is False


def test_deferred_columns_are_read_when_they_are_asked_for() -> None:
    run, *_ = begin()
    [found] = PreparedRows(Checkpoint.objects.filter(run=ParameterPlace(1)).defer("payload")).run(run.pk)
    assert found.get_deferred_fields() == {"payload"}
    assert bytes(found.payload) == bytes(Checkpoint.objects.get(pk=found.pk).payload)


def test_each_call_reads_for_its_own_values_and_as_it_is_now() -> None:
    one, two = make_run("one"), make_run("two")
    statement = PreparedRows(RUNS)
    assert [each.title for each in statement.run([one.pk])] == ["one"]
    assert [each.title for each in statement.run([two.pk])] == ["two"]
    assert statement.run([]) == []
    Run.objects.filter(pk=one.pk).update(title="another")
    assert [each.title for each in statement.run([one.pk, 2**40])] == ["another"]


def test_a_statement_is_of_no_thread_and_of_no_connection() -> None:
    run = make_run("one")
    statement = PreparedRows(RUNS)
    assert len(statement.run([run.pk])) == 1

    def elsewhere() -> list[str]:
        try:
            return [each.title for each in statement.run([run.pk])]
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(elsewhere).result() == ["one"]


def test_a_transaction_reads_what_it_has_written() -> None:
    run = make_run("one")
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(title="mine")
        assert [each.title for each in PreparedRows(RUNS).run([run.pk])] == ["mine"]
        transaction.set_rollback(True)
    assert [each.title for each in PreparedRows(RUNS).run([run.pk])] == ["one"]


@prepared_statement
def runs_titled(title: Any, but: Any) -> QuerySet[Run]:
    return Run.objects.filter(title=title, reason="50 %").exclude(OneOf(F("pk"), but)).order_by("pk")


def test_a_function_is_built_into_a_statement_once_and_takes_its_parameters_by_place() -> None:
    title = f"titled {secrets.token_hex(4)}"
    pks = [make_run(title).pk for _ in range(3)]
    assert runs_titled(title, []) == []
    Run.objects.filter(pk__in=pks).update(reason="50 %")
    assert [each.pk for each in runs_titled(title, [pks[1]])] == [pks[0], pks[2]]
    with mock.patch.object(Run.objects, "filter", side_effect=AssertionError("built again")):
        assert [each.pk for each in runs_titled(title, pks[:2])] == [pks[2]]


@prepared_statement
def runs_in_order(title: Any, *, newest: bool, most: int) -> QuerySet[Run]:
    return Run.objects.filter(title=title).order_by("-pk" if newest else "pk")[:most]


def test_keywords_choose_among_statements_which_are_each_built_once() -> None:
    title = f"titled {secrets.token_hex(4)}"
    pks = [make_run(title).pk for _ in range(3)]
    assert [each.pk for each in runs_in_order(title, newest=False, most=2)] == pks[:2]
    assert [each.pk for each in runs_in_order(title, newest=True, most=2)] == pks[:0:-1]
    with mock.patch.object(Run.objects, "filter", side_effect=AssertionError("built again")):
        assert [each.pk for each in runs_in_order(title, newest=False, most=2)] == pks[:2]
        assert [each.pk for each in runs_in_order(title, newest=True, most=2)] == pks[:0:-1]
