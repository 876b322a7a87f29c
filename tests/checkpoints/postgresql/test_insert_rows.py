"""Rows inserted by one statement are those that Django would insert, in their order."""

from __future__ import annotations

import pytest
from django.db import DataError, transaction

from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Hold
from checkpoints.postgresql.prepared_rows import build_insertion, insert_rows, next_ids
from checkpoints.postgresql.sql import run_sql
from tests.factories import make_gate, make_run
from tests.harness.sent_statements import sent

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


def test_what_is_too_long_for_its_column_is_refused_and_not_cut() -> None:
    run = make_run()
    with pytest.raises(DataError, match="too long"):
        insert_rows([Hold(run=run, subject="x" * 121, **HOLD)])


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


@pytest.mark.parametrize("many", [1, 3])
def test_ids_are_taken_for_several_models_by_one_statement_and_no_row_gets_them_again(many: int) -> None:
    run = make_run()
    with sent() as statements:
        ids = next_ids(many, Hold, Gate)
    assert (len(statements), len(ids), len(ids[0])) == (1, many, 2)
    holds = [Hold(pk=pk, run=run, subject=f"legal:{pk}", **HOLD) for pk, _ in ids]
    insert_rows(holds)
    later = Hold.objects.create(run=run, subject="legal:later", **HOLD)
    assert {hold.pk for hold in Hold.objects.filter(run=run)} == {pk for pk, _ in ids} | {later.pk}
    assert not holds[0]._state.adding


def test_none_is_no_statement() -> None:
    with sent() as statements:
        insert_rows([])
    assert not statements
