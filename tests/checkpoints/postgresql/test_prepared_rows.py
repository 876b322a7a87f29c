"""A prepared statement reads and inserts what Django's own would, for the values of this call alone."""

from __future__ import annotations

import pytest
from django.db import DataError, connection, transaction
from django.db.models import F, Model
from django.db.models.functions import JSONObject

from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Hold, Run
from checkpoints.postgresql import wire
from checkpoints.postgresql.prepared_rows import OneOf, ParameterPlace, PreparedRows, build_insertion, insert_rows
from checkpoints.postgresql.sql import run_sql
from tests.factories import make_gate, make_run, stored_runs
from tests.harness.sent_statements import sent

JOINED = (
    Run.objects.select_related("plan", "team", "started_by").annotate(shown=JSONObject(title="title")).order_by("pk")
)
RUNS = JOINED.filter(OneOf(F("pk"), ParameterPlace(1)))
HOLD = {"kind": Hold.Kind.LEGAL, "reason": "court", "by": "system"}


def make_titled(title: str) -> Run:
    run = stored_runs.make_run()
    Run.objects.filter(pk=run.pk).update(title=title)
    return run


def columns(row: Model) -> dict[str, object]:
    return {name: value for name, value in row.__dict__.items() if name != "_state"}


def test_rows_are_those_of_the_queryset_with_what_they_refer_to() -> None:
    pks = [make_titled(title).pk for title in ("one", "two", "50% of 'three' \\ %s")]
    expected = list(JOINED.filter(pk__in=pks))
    statement = PreparedRows(RUNS)
    with sent() as statements:
        found = statement.run(pks)
        assert all(each.plan.agent and each.team.name for each in found)
    assert len(statements) == 1
    assert [each.pk for each in found] == pks
    for ours, theirs in zip(found, expected, strict=True):
        assert columns(ours) == columns(theirs)
        assert columns(ours.plan) == columns(theirs.plan)
        assert columns(ours.team) == columns(theirs.team)
        assert ours.started_by == theirs.started_by
        assert ours._state.adding is False
    assert statement.run([]) == []
    Run.objects.filter(pk=pks[0]).update(title="another")
    assert [each.title for each in statement.run([pks[0], 2**40])] == ["another"]


@pytest.mark.parametrize("together", [True, False])
def test_a_list_a_null_and_a_time_by_the_database_come_back_as_they_went(together: bool) -> None:
    """unnest takes an array of arrays apart: each row got one text of all."""
    likeness = [["a" * 32, 'b",\\{}'], [], ["c"]]
    made = []
    for alike in likeness:
        old = make_gate()
        kept = {each.attname: getattr(old, each.attname) for each in Gate._meta.concrete_fields if each.name != "id"}
        run = make_run(team=old.team)
        made.append(Gate(**kept | {"run_id": run.pk, "checkpoint": run.head, "likeness": alike}))
    with transaction.atomic():
        for rows in [made] if together else [[each] for each in made]:
            insert_rows(rows)
        found = [Gate.objects.get(pk=gate.pk) for gate in made]
        transaction.set_rollback(True)  # no event vouches for them
    for there, gate, alike in zip(found, made, likeness, strict=True):
        assert (there.likeness, there.deadline, there.checkpoint) == (alike, gate.deadline, gate.checkpoint)


def test_what_goes_beside_is_one_statement_with_the_rows_and_a_fault_there_writes_nothing() -> None:
    run, other = make_run(), make_run()
    held = Hold(run=other, subject="legal:0", **HOLD)
    insert_rows([held])
    holds = [Hold(run=run, subject=f"legal:{number}", **HOLD) for number in range(1, 5)]
    freed = Hold.objects.freeing(run=other.pk, subject="legal:0", by=SYSTEM)
    [(sql, params)] = build_insertion(holds[:1])
    with sent() as statements:
        found = run_sql(
            sql, params, extras=[*build_insertion(holds[1:3]), freed, *build_insertion(holds[3:]), *build_insertion([])]
        )
    assert len(statements) == 1
    assert found[0][0] == Hold.objects.get(run=run, subject="legal:1").pk
    subjects = Hold.objects.filter(run=run).order_by("subject").values_list("subject", flat=True)
    assert list(subjects) == ["legal:1", "legal:2", "legal:3", "legal:4"]
    assert Hold.objects.get(pk=held.pk).freed_by == SYSTEM.id
    [(sql, params)] = build_insertion([Hold(run=run, subject="legal:5", **HOLD)])
    with pytest.raises(DataError, match="too long"):
        run_sql(sql, params, extras=build_insertion([Hold(run=run, subject="x" * 121, **HOLD)]))
    assert Hold.objects.filter(run=run).count() == 4


def ran(number: int) -> int | None:
    return wire.run(f"SELECT {number}", [], meanwhile=lambda: None)


@pytest.mark.parametrize("then", [(3, 1, 2, 3), (3, 4, 1, 2, 3, 4), (1, 3, 2, 3)])
def test_statements_are_prepared_again_after_a_rollback_has_dropped_them(then: tuple[int, ...]) -> None:
    assert [ran(1), ran(2)] == [1, 1]
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    assert [ran(number) for number in (*then, *then)] == [1] * 2 * len(then)
