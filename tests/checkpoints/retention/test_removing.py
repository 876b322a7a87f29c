"""What is left after a prune is exactly what was there: the same states, the same digests, the same path."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from unittest import mock

import pytest
from django.core.management import call_command
from django.db.models.functions import Now

from agents.session.run_path import RunPath
from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit import database
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Chunk, Event, Gap, Hold, Prune, Run
from checkpoints.retention import prunes, reading
from checkpoints.runs import holds
from checkpoints.store import executions, gaps
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.canonical_json import decode_canonical
from tests.checkpoints.audit.sealed_events import earlier, seal_all

from .pruned_runs import at, ended, grown, keep, looked, more, pruned, seqs


def test_the_newest_stay_with_their_states_and_the_rest_is_a_gap() -> None:
    run = ended(200)
    before = {seq: store.load_checkpoint(at(run, seq)) for seq in range(182, 202)}
    keep(run, keep_last=20)
    prune = pruned()
    assert seqs(run) == list(range(182, 202))
    assert [(gap.first_seq, gap.last_seq) for gap in run.gaps.all()] == [(1, 181)]
    for seq, snapshot in before.items():
        after = store.load_checkpoint(at(run, seq))
        assert (after.state, after.digest, after.fields) == (snapshot.state, snapshot.digest, snapshot.fields)
    assert verify_run(run) == []
    assert (prune.removed, prune.status) == (181, Prune.Status.DONE)
    assert prune.freed > 0


def test_the_executions_of_the_survivors_are_read_as_they_were() -> None:
    run = ended(150)
    keep(run, keep_last=30)
    before = executions.writes_of([at(run, seq) for seq in range(122, 151)])
    pruned()
    assert executions.writes_of(list(before)) == before


def test_the_path_and_the_history_are_whole_although_the_rows_are_gone() -> None:
    run = ended(150)
    head = run.head
    assert head
    path, ran = executions.path(head), executions.executions(run.pk)
    places = RunPath.to(head)
    keep(run, keep_last=10)
    pruned()
    gone = [each for each in executions.path(head) if each.removed]
    assert [each.seq for each in gone] == list(range(1, 142))
    assert [strip(each) for each in executions.path(head)] == [strip(each) for each in path]
    assert [strip(each) for each in executions.executions(run.pk)] == [strip(each) for each in ran]
    assert [strip(each) for each in RunPath.to(head)] == [strip(each) for each in places]


def test_a_path_unpacks_the_gaps_that_it_goes_through_and_no_others() -> None:
    """All gaps of the lineage were unpacked for the first that was met."""
    run, claim, head = grown(60)
    for seq in (20, 40):
        holds.name(run, seq, f"At {seq}", by=SYSTEM)
    before = {seq: [strip(each) for each in executions.path(at(run, seq))] for seq in (20, 40, 60)}
    keep(run, keep_last=5)
    pruned()
    more(head, claim, 20)
    pruned()
    assert [(gap.first_seq, gap.last_seq) for gap in run.gaps.order_by("first_seq")] == [
        (2, 19), (21, 39), (41, 55), (56, 75),
    ]  # fmt: skip
    for seq, unpacked in ((20, [2]), (40, [21, 2])):
        with mock.patch.object(gaps, "removed", side_effect=gaps.removed) as reading:
            assert [strip(each) for each in executions.path(at(run, seq))] == before[seq]
        assert [call.args[0].first_seq for call in reading.call_args_list] == unpacked
    head_now = Run.objects.get(pk=run.pk).head
    assert head_now
    assert [strip(each) for each in executions.path(head_now)][:60] == before[60]


def test_a_look_reads_the_runs_that_a_policy_touches_and_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run was read, and counted, whether any rule could let go of anything of it."""
    monkeypatch.setattr(prunes, "PASSED", 3)
    due, short, young, fresh, free = ended(30), ended(10), ended(30), ended(30), ended(30)
    for run in (due, short):
        keep(run, keep_last=20)
    for run in (young, fresh):
        keep(run, keep_last=20, keep_days=30)
    Run.objects.filter(pk=fresh.pk).update(created_at=Now() - timedelta(days=31))
    with mock.patch.object(reading, "history_of", side_effect=reading.history_of) as read:
        prune = looked()
    looked_at = [call.args[0] for call in read.call_args_list]
    assert [run for run in (due, short, young, fresh, free) if run.pk in looked_at] == [due, fresh]
    assert prune.runs == len(looked_at)
    assert [line.run_id for line in prune.lines.filter(run__in=[due, short, young, fresh, free])] == [due.pk]


def strip(header: CheckpointHeader) -> CheckpointHeader:
    return header._replace(removed=False)


def test_a_run_goes_on_after_its_early_checkpoints_are_gone_and_is_pruned_again() -> None:
    run, claim, head = grown(100)
    keep(run, keep_last=10)
    pruned()
    head = more(store.load(run), claim, 100)
    assert store.load(run).state == head.state
    assert verify_run(run) == []
    pruned()
    assert seqs(run)[-10:] == list(range(191, 201))
    assert store.load(run).state["n"] == 200
    assert len(store.load(run).state["messages"]) == 199
    assert verify_run(run) == []


def test_a_worker_that_holds_the_head_in_hand_saves_on_it_after_a_prune() -> None:
    run, claim, head = grown(100)
    keep(run, keep_last=5)
    pruned()
    head = more(head, claim, 70)  # over an anchor
    assert store.load(run).state == head.state
    assert verify_run(run) == []


def test_what_is_named_stays_in_the_middle() -> None:
    run = ended(200)
    named = [at(run, seq) for seq in (7, 64, 65, 130)]
    states = {id: store.load_checkpoint(id).state for id in named}
    for id in named:
        Hold.objects.make(run=run, checkpoint=id, kind="name", subject=f"name:{id}", reason="x", by=SYSTEM)
    keep(run, keep_last=20)
    pruned()
    assert seqs(run) == [7, 64, 65, 130, *range(182, 202)]
    assert {id: store.load_checkpoint(id).state for id in named} == states
    assert verify_run(run) == []


def test_chunks_that_nothing_names_any_more_are_freed() -> None:
    run = ended(200)
    before = Chunk.objects.filter(lineage=run.pk).count()
    keep(run, keep_last=20)
    pruned()
    assert 0 < Chunk.objects.filter(lineage=run.pk).count() < before
    assert verify_run(run) == []


def test_an_event_tells_of_it_and_names_the_gap() -> None:
    run = ended(60)
    policy = keep(run, keep_last=20)
    pruned()
    [event] = Event.objects.filter(run_id=run.pk, kind="retention.pruned")
    gap = Gap.objects.get(run=run)
    assert decode_canonical(bytes(event.data)) == {
        "first": 1, "last": 41, "count": 41, "policy": run.plan.agent, "version": policy.version, "gap": 1,
        "digest": bytes(gap.digest).hex(),
    }  # fmt: skip


def test_the_command_says_what_would_go_and_removes_it() -> None:
    run = ended(60)
    keep(run, keep_last=20)
    said = StringIO()
    call_command("prune", "--dry-run", stdout=said)
    assert f"R-{run.pk} ({run.plan.agent}): 41 go (1 to 41)" in said.getvalue()
    assert "Nothing was removed." in said.getvalue()
    assert len(seqs(run)) == 61
    line = looked().lines.get(run=run)
    assert (line.checkpoints, line.ranges) == (41, [[1, 41]])
    assert line.size > 0
    said = StringIO()
    call_command("prune", "--json", stdout=said)
    told = json.loads(said.getvalue())
    assert (told["status"], told["removed"]) == ("done", 41)
    assert len(seqs(run)) == 20


def test_the_seals_verify_after_heads_that_they_cover_are_gone() -> None:
    run = ended(60)
    seal_all()
    keep(run, keep_last=20)
    pruned()
    seal_all()
    assert verify_run(run) == []
    assert f"run {run.pk}" not in "\n".join(map(str, database.verify(after=earlier())))
