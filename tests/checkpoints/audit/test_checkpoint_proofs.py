"""A checkpoint counts as saved by its proof.

Whoever had the application's role and no key appended a checkpoint, digests and all, and moved the run's head to it;
the run went on from there, and a verification of everything found nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Q

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit import covered_rows
from checkpoints.audit.covered_rows import NO_PROOF, UNPROVEN
from checkpoints.audit.verify_runs import verify_all, verify_run
from checkpoints.events import event_log
from checkpoints.events.event_proof import CHECKPOINTS
from checkpoints.models import Checkpoint, Run
from checkpoints.store import start_and_fork
from checkpoints.store.claims import Claim
from tests.factories.stored_runs import REWIND, STEP, begin
from tests.harness.altered_rows import altered, owner

Head = Any


def step(run: Run, claim: Claim, head: Head) -> Run:
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    return run


def step_with_all(run: Run, claim: Claim, head: Head) -> Run:
    """What needs another statement: chunks, notes, a run that stops."""
    store.save(head, {"doc": "d" * 9000}, claim=claim, header=STEP, notes=["why"], status="waiting", reason="asks")
    return run


def deferred(run: Run, claim: Claim, head: Head) -> Run:
    store.defer(head, {"n": 1}, claim=claim, header=STEP).write()
    return run


def rewind(run: Run, claim: Claim, head: Head) -> Run:
    after = store.save(head, {"n": 1}, claim=claim, header=STEP)
    store.move_head(head, {"n": 2}, claim=claim, header=REWIND)
    assert after.seq == 2
    return run


def fork(run: Run, claim: Claim, head: Head) -> Run:
    return store.fork(head.id, by=SYSTEM, writes={"n": 3})


def start(run: Run, claim: Claim, head: Head) -> Run:
    return begin(n=0)[0]


def waiting(run: Run, claim: Claim, head: Head) -> Run:
    """A run that waits for people from its first checkpoint on."""
    made = Run(plan=run.plan, team=run.team, title="Asks", started_as=SYSTEM.id)
    with transaction.atomic():
        [number], at, list_format = start_and_fork.new_numbers(1)
        draft = start_and_fork.first_checkpoint(
            made, number, {"n": 0}, first_step="one", at=at, list_format=list_format
        )
        rows = start_and_fork.waiting_rows([made], [draft], ["asks: x"])
        event_log.append_events(start_and_fork.began(made, SYSTEM), extras=rows)
    return made


WAYS = [step, step_with_all, deferred, rewind, fork, start, waiting]


@pytest.mark.parametrize("way", WAYS)
def test_whatever_saves_a_checkpoint_proves_it(way: Callable[..., Run]) -> None:
    run = way(*begin(n=0))
    assert not Checkpoint.objects.filter(run=run, proof=None).exists()
    assert verify_run(run) == []


@pytest.mark.parametrize("way", WAYS)
def test_what_was_saved_without_the_key_is_named(settings: Any, way: Callable[..., Run]) -> None:
    for guess, said in (("", NO_PROOF), ("a guess", UNPROVEN)):
        before = begin(n=0)
        key, settings.HOLDPOINT_SEAL_KEY = settings.HOLDPOINT_SEAL_KEY, guess
        run = way(*before)
        settings.HOLDPOINT_SEAL_KEY = key
        assert said in {problem.reason for problem in verify_run(run)}
        Checkpoint.objects.filter(run=run).delete()


def test_a_verification_of_everything_names_it(settings: Any) -> None:
    run, claim, head = begin(n=0)
    key, settings.HOLDPOINT_SEAL_KEY = settings.HOLDPOINT_SEAL_KEY, ""
    forged = store.save(head, {"n": 1}, claim=claim, header=STEP)
    settings.HOLDPOINT_SEAL_KEY = key
    assert f"checkpoint {forged.id} (run {run.pk}, number 2): {NO_PROOF}" in map(str, verify_all())
    Checkpoint.objects.filter(pk=forged.id).delete()


def test_a_proof_is_of_one_checkpoint() -> None:
    run, claim, head = begin(n=0)
    after = store.save(head, {"n": 1}, claim=claim, header=STEP)
    first, second = Checkpoint.objects.filter(run=run).order_by("seq")
    assert first.proof is not None
    with altered(second, proof=bytes(first.proof)):
        assert [problem.reason for problem in verify_run(run)] == [UNPROVEN]
    assert second.pk == after.id


def test_a_proof_of_the_key_before_counts(settings: Any) -> None:
    run, claim, head = begin(n=0)
    settings.HOLDPOINT_OLD_SEAL_KEYS, settings.HOLDPOINT_SEAL_KEY = [settings.HOLDPOINT_SEAL_KEY], "the next key"
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    assert [problem.reason for problem in verify_run(run)] == []


@pytest.fixture
def unfinished() -> Iterator[None]:
    """A database from before proofs were required."""
    with owner() as made:
        made.execute("CREATE TEMP TABLE kept AS SELECT * FROM checkpoints_event WHERE subject = %s", [CHECKPOINTS])
        made.execute("DELETE FROM checkpoints_event WHERE subject = %s", [CHECKPOINTS])
        yield
        made.execute("DELETE FROM checkpoints_event WHERE subject = %s", [CHECKPOINTS])
        made.execute("INSERT INTO checkpoints_event OVERRIDING SYSTEM VALUE TABLE kept")


@pytest.mark.usefixtures("unfinished")
def test_what_was_there_before_counts_once_the_update_is_finished(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release before proves nothing: what it still saves beside this one is no forgery."""
    monkeypatch.setattr(covered_rows, "PROOFS_PART", 1)  # so that each run has an event of its own
    (one, claim, head), (other, *_) = begin(n=0), begin(n=0)
    covered_rows.require_proofs(finish=False)
    key, settings.HOLDPOINT_SEAL_KEY = settings.HOLDPOINT_SEAL_KEY, ""
    head = store.save(head, {"n": 1}, claim=claim, header=STEP)
    third = begin(n=0)[0]
    settings.HOLDPOINT_SEAL_KEY = key
    assert [verify_run(run) for run in (one, other, third)] == [[], [], []]
    covered_rows.require_proofs(finish=True)
    assert [verify_run(run) for run in (one, other, third)] == [[], [], []]
    settings.HOLDPOINT_SEAL_KEY = ""
    late = store.save(head, {"n": 2}, claim=claim, header=STEP)
    settings.HOLDPOINT_SEAL_KEY = key
    covered_rows.require_proofs(finish=True)  # vouches for nothing more
    assert [problem.reason for problem in verify_run(one)] == [NO_PROOF]
    Checkpoint.objects.filter(Q(run=third) | Q(pk__in=(late.id, head.id))).delete()


def test_where_no_key_is_set_nothing_is_required(settings: Any) -> None:
    settings.HOLDPOINT_SEAL_KEY = ""
    run, claim, head = begin(n=0)
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    assert verify_run(run) == []


@pytest.mark.usefixtures("unfinished")
def test_a_change_of_the_key_vouches_for_nothing_again(settings: Any) -> None:
    run, claim, head = begin(n=0)
    covered_rows.require_proofs(finish=True)
    key, settings.HOLDPOINT_SEAL_KEY = settings.HOLDPOINT_SEAL_KEY, ""
    forged = store.save(head, {"n": 1}, claim=claim, header=STEP)
    settings.HOLDPOINT_SEAL_KEY = "the next key"
    covered_rows.require_proofs(finish=True)
    assert NO_PROOF in {problem.reason for problem in verify_run(run)}
    settings.HOLDPOINT_SEAL_KEY = key
    assert [problem.reason for problem in verify_run(run)] == [NO_PROOF]
    Checkpoint.objects.filter(pk=forged.id).delete()
