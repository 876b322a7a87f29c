"""Two at once: pruners, and a pruner with a writer, a reader, a rewind, a fork, a hold; and one that is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from checkpoints import crash_points, store, tasks
from checkpoints.actors import SYSTEM
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import CheckpointRemoved, NoSuchCheckpoint
from checkpoints.layout import rows
from checkpoints.models import Chunk, Prune, Run
from checkpoints.retention import chunks, delete_batch, prune_line, prunes, reading
from checkpoints.retention.prunes import hold_prune_lock
from checkpoints.runs import holds
from checkpoints.store.claims import Claim
from checkpoints.store.gaps import RemovalReason
from tests.factories.stored_runs import REWIND
from tests.harness import services
from tests.harness.examples import first_alone
from tests.harness.waiting import until

from .pruned_runs import at, elsewhere, ended, grown, header, keep, more, ordered, pruned, seqs

BIG = {"doc": "z" * 5000}


def while_removing(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> list[Any]:
    """Have `do` begin while a prune has removed rows and not committed; what came of it, once the prune is done."""
    came: list[Any] = []
    threads: list[threading.Thread] = []

    def act() -> None:
        try:
            came.append(do())
        except Exception as error:  # noqa: BLE001 - what came of it is what is asked
            came.append(error)

    def point(name: str, step: str = "", value: Any = None) -> None:
        if name == "prune_removed" and not threads:
            threads.append(elsewhere(act))
            threads[0].join(0.3)
            assert not came, "it waits for the prune"

    monkeypatch.setattr(crash_points, "point", point)
    pruned()
    threads[0].join()
    return came


def test_a_writer_of_the_run_that_is_pruned_waits_for_moments_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    run, claim, head = grown(100)
    keep(run, keep_last=10)
    [saved] = while_removing(monkeypatch, lambda: more(head, claim, 1))
    assert saved.seq == 101
    assert store.load(run).state == saved.state
    assert verify_run(run) == []


def rewind(run: Run, claim: Claim) -> Any:
    return store.move_head(store.load_checkpoint(at(run, 7)), {}, claim=claim, header=REWIND)


@pytest.mark.parametrize(
    ("act", "came_of_it"),
    [
        (lambda run, claim: holds.hold(run, 7, "x", by=SYSTEM), CheckpointRemoved),
        (lambda run, claim: store.fork(at(run, 7), by=SYSTEM), NoSuchCheckpoint),
        pytest.param(rewind, NoSuchCheckpoint, marks=pytest.mark.long),
    ],
    ids=["hold", "fork", "rewind"],
)
def test_what_wants_a_checkpoint_that_is_being_removed_comes_too_late(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[Run, Claim], Any], came_of_it: type[Any]
) -> None:
    run, claim, _ = grown(60)
    target = at(run, 7)
    monkeypatch.setitem(globals(), "at", lambda *_: target)
    keep(run, keep_last=10)
    [came] = while_removing(monkeypatch, lambda: act(run, claim))
    assert isinstance(came, came_of_it)
    assert verify_run(run) == []
    assert Run.objects.filter(lineage=run.pk).count() == 1


def test_a_hold_or_a_move_after_the_look_is_seen_under_the_lock() -> None:
    """What was prepared is not removed where somebody held, rewound or revived the run meanwhile."""
    moved = partial(store.move_head, writes={}, header=REWIND)
    changes: tuple[tuple[str, Callable[[Run, Claim], Any]], ...] = (
        ("running", lambda run, claim: holds.hold(run, 7, "x", by=SYSTEM)),
        ("running", lambda run, claim: holds.hold(run, None, "x", by=SYSTEM)),
        ("running", lambda run, claim: moved(store.load_checkpoint(at(run, 55)), claim=claim)),
        ("running", lambda run, claim: store.fork(at(run, 7), by=SYSTEM)),
        ("failed", lambda run, claim: Run.objects.filter(pk=run.pk).update(status="running")),
    )
    for status, change in changes:
        run, claim, _ = grown(60)
        Run.objects.filter(pk=run.pk).update(status=status)
        history = reading.history_of(run.pk)
        portion = delete_batch.prepared(run.pk, run.pk, history, list(range(2, 40)))
        change(run, claim)
        with pytest.raises(delete_batch.RunMoved), transaction.atomic():
            delete_batch.remove(portion, why=RemovalReason("x", 1, SYSTEM, history.places[0].at))
        assert 7 in seqs(run)


def test_two_pruners_of_one_order_remove_everything_once() -> None:
    runs = [ended(80) for _ in range(2)]
    for run in runs:
        keep(run, keep_last=10)
    prune = ordered()
    ready = threading.Barrier(2)

    def both() -> None:
        ready.wait()
        mine = Prune.objects.get(pk=prune.pk)
        while not prunes.apply(mine):
            pass

    for thread in [elsewhere(both), elsewhere(both)]:
        thread.join()
    prune.refresh_from_db()
    assert (prune.status, prune.removed) == (Prune.Status.DONE, 2 * 71)
    for run in runs:
        assert verify_run(run) == []
        assert sum(gap.last_seq - gap.first_seq + 1 for gap in run.gaps.all()) == 71


@pytest.mark.parametrize("point", first_alone(crash_points.OF_PRUNES))
@pytest.mark.parametrize("hit", first_alone([1, 2]))
def test_a_prune_that_is_killed_is_gone_on_with(point: str, hit: int) -> None:
    runs = [ended(150) for _ in range(2)]
    for run in runs:
        keep(run, keep_last=10)
    states = {run.pk: store.load(run).state for run in runs}
    killed = services.run(*services.manage("prune", "--json"), env={"HOLDPOINT_CRASH": f"{point}:kill:{hit}"})
    assert killed.returncode == -9, killed.stderr
    for run in runs:
        assert verify_run(run) == []
        assert store.load(run).state == states[run.pk]
    done = services.run(*services.manage("prune", "--json"))
    assert done.returncode == 0, done.stderr
    assert not Prune.objects.under_way().exists()
    for run in runs:
        assert seqs(run) == list(range(142, 152))
        assert verify_run(run) == []
        assert store.load(run).state == states[run.pk]
        marks = chunks.NamedChunks(run.pk)
        marks.read([run.pk])
        left = set(map(bytes, Chunk.objects.filter(lineage=run.pk).values_list("digest", flat=True)))
        assert left == marks.named, "chunks that nothing names were left behind"


def about_to_free() -> tuple[Run, Claim, store.Snapshot, Prune]:
    """A prune after which nothing names the chunk of BIG, and the run that wrote it."""
    run, claim, head = grown(3, long=False)
    head = store.save(head, BIG, claim=claim, header=header(4))
    head = store.save(head, {"doc": "small"}, claim=claim, header=header(5))
    head = more(head, claim, 70, long=False)
    keep(run, keep_last=3)
    return run, claim, head, ordered()


def test_a_fork_that_lands_while_the_lock_for_chunks_is_waited_for_keeps_its_chunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, _, head, prune = about_to_free()
    real, forks, threads = chunks._runs, list[Run](), list[threading.Thread]()
    begun = threading.Event()

    def fork() -> None:
        with transaction.atomic():
            made = store.fork(head.id, by=SYSTEM, writes=BIG)
            begun.set()
            until(lambda: waits_for_a_lock("FOR NO KEY UPDATE"), what="the pruner waits")
        forks.append(made)

    def runs(sql: str, lineage: int) -> list[int]:
        if "FOR NO KEY UPDATE" in sql and not threads:
            threads.append(elsewhere(fork))
            begun.wait(10)
        return real(sql, lineage)

    monkeypatch.setattr(chunks, "_runs", runs)
    assert prunes.apply(prune)
    threads[0].join()
    assert store.load(forks[0]).state["doc"] == BIG["doc"]
    assert verify_run(forks[0]) == []


def waits_for_a_lock(words: str) -> bool:
    """Whether a statement with these words waits for a lock now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees who waited when it first looked
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s", [f"%{words}%"]
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("change", first_alone([{"keep_last": 150}, {"keep_last": 10, "enabled": False}]))
def test_a_policy_that_is_changed_or_switched_off_ends_the_prune_that_follows_it(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """What was ordered was removed to its end by the version before: nobody could stop it."""
    monkeypatch.setattr(prune_line, "PORTION", 40)
    run = ended(200)
    keep(run, keep_last=10)
    prune = ordered()
    monkeypatch.setattr(
        crash_points, "point", lambda name, *_: keep(run, **change) if name == "prune_removed" else None
    )
    assert prunes.apply(prune)
    left = len(seqs(run))
    assert 100 < left < 200, "the portion that was under way alone"
    assert prune.kept_after_all == left - 10
    assert verify_run(run) == []


def test_a_message_that_finds_another_at_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(tasks.prune, "delay", lambda: sent.append("again"))
    monkeypatch.setattr(prunes, "go_on", lambda *, seconds: True)
    held, done = threading.Event(), threading.Event()

    def another() -> None:
        with hold_prune_lock() as mine:
            assert mine
            held.set()
            done.wait(10)

    at_it = elsewhere(another)
    held.wait(10)
    tasks.prune()
    assert sent == []
    done.set()
    at_it.join(10)
    tasks.prune()
    assert sent == ["again"]


def test_a_load_whose_rows_a_prune_rewrote_before_its_chunks_were_read_reads_them_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = ended(200)
    stale = rows.head_trail(run.pk)
    state = store.load(run).state
    keep(run, keep_last=1)
    pruned()
    run = Run.objects.get(pk=run.pk)
    read, first = rows.head_trail, [stale]
    monkeypatch.setattr(rows, "head_trail", lambda pk: first.pop() if first else read(pk))
    assert store.load(run).state == state
