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


def make_titled(title: str) -> Run:
    run = stored_runs.make_run()
    Run.objects.filter(pk=run.pk).update(title=title)
    return run


def columns(row: Model) -> dict[str, object]:
    return {name: value for name, value in row.__dict__.items() if name != "_state"}


def test_rows_are_those_of_the_queryset_with_what_they_refer_to() -> None:
    pks = [make_titled(title).pk for title in ("one", "two", "50% of 'three' \\ %s")]
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


def test_each_call_reads_for_its_own_values_and_as_it_is_now() -> None:
    one, two = make_titled("one"), make_titled("two")
    statement = PreparedRows(RUNS)
    assert [each.title for each in statement.run([one.pk])] == ["one"]
    assert [each.title for each in statement.run([two.pk])] == ["two"]
    assert statement.run([]) == []
    Run.objects.filter(pk=one.pk).update(title="another")
    assert [each.title for each in statement.run([one.pk, 2**40])] == ["another"]


HOLD = {"kind": Hold.Kind.LEGAL, "reason": "court", "by": "system"}


def test_each_gets_its_own_number_and_what_the_database_gives() -> None:
    runs = [make_run() for _ in range(3)]
    holds = [Hold(run=run, subject=f"legal:{run.pk}", **HOLD) for run in reversed(runs)]
    insert_rows(holds)
    assert [hold.pk for hold in holds] == sorted(hold.pk for hold in holds)
    for hold in holds:
        assert Hold.objects.values().get(pk=hold.pk) == {
            field.attname: getattr(hold, field.attname) for field in Hold._meta.concrete_fields
        }
        assert not hold._state.adding


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


def test_what_goes_beside_is_one_statement_with_the_rows() -> None:
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


def test_a_fault_beside_writes_nothing() -> None:
    run = make_run()
    [(sql, params)] = build_insertion([Hold(run=run, subject="legal:1", **HOLD)])
    with pytest.raises(DataError, match="too long"):
        run_sql(sql, params, extras=build_insertion([Hold(run=run, subject="x" * 121, **HOLD)]))
    assert not Hold.objects.filter(run=run).exists()


def ran(number: int) -> int | None:
    return wire.run(f"SELECT {number}", [], meanwhile=lambda: None)


@pytest.mark.parametrize("then", [(3, 1, 2, 3), (3, 4, 1, 2, 3, 4), (1, 3, 2, 3)])
def test_statements_are_prepared_again_after_a_rollback_has_dropped_them(then: tuple[int, ...]) -> None:
    assert [ran(1), ran(2)] == [1, 1]
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    assert [ran(number) for number in (*then, *then)] == [1] * 2 * len(then)
