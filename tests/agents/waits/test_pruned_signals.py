"""Retention removes the signals and waits of ended runs that no remaining checkpoint needs.

A rewind after it reads what it would have read without it.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Q
from django.template.defaultfilters import filesizeformat

from agents.models import Signal, Wait
from agents.moves import fork, rewind
from agents.waits import signals
from agents.work_errors import RunEnded, SignalConflict, SignalRemoved
from checkpoints import actors, crash_points
from checkpoints.actors import SYSTEM
from checkpoints.models import Event, Prune, Run
from checkpoints.retention import policies, prune_report, prunes, reading, unneeded_rows
from checkpoints.retention.delete_batch import RunMoved
from checkpoints.runs import holds
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.pages.test_run_page import text_of
from tests.checkpoints.retention.conftest import no_policies as no_policies
from tests.checkpoints.retention.pruned_runs import elsewhere, keep, looked, pruned, seqs
from tests.checkpoints.retention.test_races import waits_for_a_lock
from tests.factories import ann, make_user
from tests.factories.driven_runs import advance_to_rest, make_run, state
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import confirmed
from tests.harness.waiting import until


def sent(run: Run, *percents: int) -> None:
    """Send the run these, each under a key that says which it is."""
    for percent in percents:
        signals.send(run, "health", {"percent": percent}, key=f"key-{percent}", by=actors.SYSTEM)


def kept(run: Run) -> list[int]:
    """The signals that are still there, oldest first."""
    return [each.content["percent"] for each in Signal.objects.filter(run=run).order_by("pk")]


def relayed() -> Run:
    """An ended run whose first step read two signals, its second one, and nobody the last."""
    run = make_run("relay")
    sent(run, 10, 20, 30, 40)
    assert advance_to_rest(run).status == "completed"
    return run


def heard(run: Run) -> list[int]:
    """What the steps of a series have read."""
    return [state(run)[name] for name in ("first", "second", "third", "fourth")]


def test_what_was_read_before_every_remaining_checkpoint_goes_with_its_waits() -> None:
    run = relayed()
    keep(run, keep_last=2)
    assert pruned().lines.get(run=run).signals_and_waits_removed == 4
    assert (seqs(run), kept(run)) == ([2, 3], [30, 40])
    assert list(Wait.objects.filter(run=run).values_list("step", flat=True)) == ["hear"]
    rewind.rewind(run, to=2, by=ann(run.team))
    assert advance_to_rest(run).status == "completed"
    assert (state(run)["first"], state(run)["second"]) == ([10, 20], 30)


def test_a_run_that_can_go_on_from_nowhere_keeps_none_and_all_stay_while_its_input_is_kept_or_it_lives() -> None:
    live, ended = make_run("relay"), relayed()
    sent(live, 10, 20)
    assert advance_to_rest(live).status == "waiting"
    keep(ended, keep_last=1)
    pruned()
    assert (seqs(ended), kept(ended), Wait.objects.filter(run=ended).count()) == ([3], [], 0)
    assert kept(live) == [10, 20]
    assert unneeded_rows.find(live, reading.history_of(live.pk), [1]) == []
    run = relayed()
    keep(run, keep_last=1, keep_decisions=True)
    pruned()
    assert (seqs(run), kept(run)) == ([1, 3], [10, 20, 30, 40])
    holds.hold(run, None, "Lawsuit", by=SYSTEM)
    assert unneeded_rows.find(run, reading.history_of(run.pk), [1, 2]) == []


def test_a_prune_that_dies_while_it_removes_them_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    run = relayed()
    keep(run, keep_last=2)
    monkeypatch.setenv("HOLDPOINT_CRASH", f"{crash_points.OF_UNNEEDED}@{run.pk}:raise")
    with pytest.raises(crash_points.Crashed):
        pruned()
    assert (seqs(run), kept(run)) == ([2, 3], [10, 20, 30, 40])
    monkeypatch.delenv("HOLDPOINT_CRASH")
    assert prunes.apply(Prune.objects.get(status=Prune.Status.APPLYING))
    assert kept(run) == [30, 40]


@pytest.mark.parametrize(
    ("last", "named", "moves"),
    first_alone([(2, (), (("edit", 1),)), (1, (2, 4), (("rewind", 1), ("edit", 2), ("edit", 1)))]),
)
def test_a_pruned_run_reads_after_a_rewind_what_it_reads_without_a_prune(
    last: int, named: tuple[int, ...], moves: tuple[tuple[str, int], ...]
) -> None:
    """Another run of the same history, which is never pruned, tells what is right."""
    run, twin = make_run("series"), make_run("twin")
    keep(run, keep_last=last)

    def move(kind: str, at: int, salt: int = 0) -> None:
        for each in (run, twin):
            if kind == "rewind":
                rewind.rewind(each, to=at, by=ann(each.team))
            else:
                patch = [{"op": "replace", "path": "/salt", "value": salt}]
                rewind.edit(each, at=at, patch=patch, by=ann(each.team))
            advance_to_rest(each)

    for each in (run, twin):
        sent(each, *range(10, 90, 10))
        assert advance_to_rest(each).status == "completed"
    for salt, (kind, at) in enumerate(moves, start=1):
        move(kind, at, salt)
    for seq in named:
        holds.name(run, seq, "x", by=SYSTEM)
    pruned()
    for at in seqs(run):
        if Run.objects.get(pk=run.pk).checkpoints.get(seq=at).next_step:
            for kind in ("rewind", "edit"):
                move(kind, at, 100 + at)
                assert heard(run) == heard(twin), f"{kind} to {at}"


def edited(run: Run, field: str) -> Run:
    """The run, when it has rested after an edit of its input."""
    rewind.edit(run, at=1, patch=[{"op": "replace", "path": f"/{field}", "value": 7}], by=ann(run.team))
    return advance_to_rest(run)


def test_what_a_step_read_whose_output_a_fork_still_has_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run reuses the fork's output: with nothing to say that it read a signal, a later step read that too."""
    run = make_run("series")
    sent(run, *range(10, 90, 10))
    advance_to_rest(run)
    advance_to_rest(fork.fork(run, at=1, by=ann(run.team)))
    keep(run, keep_last=1)
    with monkeypatch.context() as patched:
        patched.setattr(policies, "touched", lambda *_: Q(pk=run.pk))  # the fork stays as it is
        pruned()
    assert seqs(run) == [1, 5]
    assert heard(edited(run, "pepper")) == [10, 20, 30, 40]


def test_a_key_is_known_after_its_signal_is_removed() -> None:
    """Sent again to the run that was rewound it was a new one, and read a second time."""
    run = relayed()
    first = Signal.objects.get(run=run, key="key-10").pk
    keep(run, keep_last=2)
    pruned()
    rewind.rewind(run, to=2, by=ann(run.team))
    again, new = signals.send(run, "health", {"percent": 10}, key="key-10", by=actors.SYSTEM)
    assert (again.pk, again.name, again.key, again.by, new) == (first, "health", "key-10", actors.SYSTEM.id, False)
    with pytest.raises(SignalConflict):
        signals.send(run, "health", {"percent": 11}, key="key-10", by=actors.SYSTEM)
    assert signals.send(run, "health", {"percent": 11}, key="key-11", by=actors.SYSTEM)[1]
    assert Event.objects.filter(run_id=run.pk, kind="signal.received").count() == 5


def test_nothing_of_a_run_goes_that_was_held_or_rewound_since_it_was_found() -> None:
    for change in (
        lambda run: holds.hold(run, None, "x", by=SYSTEM),
        lambda run: rewind.rewind(run, to=2, by=ann(run.team)),
        lambda run: advance_to_rest(rewind.rewind(run, to=2, by=ann(run.team))),
    ):
        run = relayed()
        history = reading.history_of(run.pk)
        found = unneeded_rows.find(run, history, [1])
        assert [len(bundle) for bundle in found] == [2, 2]
        change(run)
        with pytest.raises(RunMoved), transaction.atomic():
            unneeded_rows.remove(run.pk, history, found)
        assert kept(run) == [10, 20, 30, 40]


def test_a_rewind_waits_for_the_batch_that_is_removed_and_reads_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    run = relayed()
    keep(run, keep_last=2)
    threads: list[threading.Thread] = []

    def point(name: str, step: str = "", value: Any = None) -> None:
        if (name, step) == (crash_points.OF_UNNEEDED, str(run.pk)) and not threads:
            threads.append(elsewhere(lambda: rewind.rewind(Run.objects.get(pk=run.pk), to=2, by=ann(run.team))))
            until(lambda: waits_for_a_lock("checkpoints_run"), what="the rewind waits")

    with monkeypatch.context() as patched:
        patched.setattr(crash_points, "point", point)
        pruned()
    threads[0].join()
    assert kept(run) == [30, 40]
    assert advance_to_rest(run).status == "completed"
    assert (state(run)["first"], state(run)["second"]) == ([10, 20], 30)


def test_in_small_batches_a_signal_never_stays_without_its_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unneeded_rows, "BATCH", 1)
    run = relayed()
    keep(run, keep_last=1)
    pairs: list[tuple[int, int]] = []

    def point(name: str, step: str = "", value: Any = None) -> None:
        if (name, step) == (crash_points.OF_UNNEEDED, str(run.pk)):
            pairs.append((len(kept(run)), Wait.objects.filter(run=run).count()))

    monkeypatch.setattr(crash_points, "point", point)
    pruned()
    assert pairs == [(3, 2), (2, 1), (1, 0), (0, 0)]


def test_what_an_earlier_prune_left_goes_with_no_checkpoint_is_counted_and_shows_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page named no run above its table and stood at 0 %, it freed nothing, and the audit counted nothing of it."""
    keep(relayed(), keep_last=2)
    pruned()
    run = relayed()
    with monkeypatch.context() as patched:
        patched.setattr(unneeded_rows, "_finders", [])
        pruned()
    assert (seqs(run), kept(run)) == ([2, 3], [10, 20, 30, 40])
    prune, client = looked(), confirmed(make_user("Root", superuser=True))
    assert (prune.checkpoints, prune.signals_and_waits) == (0, {"shown": 4, "gone": 0})
    value = len(b'{"percent":10}')
    assert (prune.size, prune.lines.get(run=run).size) == (4 * reading.ROW + 2 * value,) * 2
    [told] = [each for each in prune_report.lines(prune) if each.line.run_id == run.pk]
    assert "and 4 signals and waits" in told.words
    address = f"/admin/checkpoints/prune/{prune.pk}/"

    def page() -> str:
        return client.get(f"{address}change/").content.decode()

    assert 'value="Delete signals and waits"' in page()
    for words in (
        "4 signals and waits of ended runs, which no checkpoint that is kept needs.", "Of 1 run: 4 signals and waits",
        f"About {filesizeformat(prune.size)} will be freed.",
    ):  # fmt: skip
        assert text_of(words) in text_of(page())
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)

    def stop(name: str, step: str = "", value: Any = None) -> None:
        if (name, step) == (crash_points.OF_UNNEEDED, str(run.pk)) and len(kept(run)) == 2:
            elsewhere(lambda: prunes.stop(Prune.objects.get(pk=prune.pk), by=SYSTEM)).join()

    monkeypatch.setattr(unneeded_rows, "BATCH", 1)
    with monkeypatch.context() as patched:
        patched.setattr(crash_points, "point", stop)
        assert prunes.apply(prune)
    assert "Signals and waits: 2 of 4." in text_of(page())
    Prune.objects.filter(pk=prune.pk).update(status=Prune.Status.APPLYING)
    assert 'value="50"' in page()
    prune.refresh_from_db()
    assert prunes.apply(prune)
    assert (prune.status, prune.freed, prune.signals_and_waits) == ("done", prune.size, {"shown": 4, "gone": 4})
    assert "So were 4 signals and waits." in text_of(page())
    said = Event.objects.filter(subject=f"prune:{prune.pk}").order_by("pk")
    assert [(each.kind, decode_canonical(bytes(each.data))["signals_and_waits"]) for each in said] == [
        ("retention.ordered", 4), ("retention.stopped", 2), ("retention.finished", 4),
    ]  # fmt: skip
    cleared = Event.objects.filter(run_id=run.pk, kind="retention.cleared")
    assert [decode_canonical(bytes(each.data))["signals_and_waits"] for each in cleared] == [2, 2]


@pytest.mark.parametrize("key", ['a"b\\c', '"name":"health"'])
def test_a_key_of_any_characters_is_known_after_its_signal_is_removed(key: str) -> None:
    run = make_run("relay")
    for other in ("before", key, "after"):
        signals.send(run, "health", {"percent": 10}, key=other, by=actors.SYSTEM)
    assert advance_to_rest(run).status == "completed"
    keep(run, keep_last=1)
    pruned()
    assert not Signal.objects.filter(run=run).exists()
    assert not signals.send(run, "health", {"percent": 10}, key=key, by=actors.SYSTEM)[1]
    with pytest.raises(RunEnded):
        signals.send(run, "health", {"percent": 10}, key=f"{key}x", by=actors.SYSTEM)


def test_a_secret_that_was_removed_is_not_taken_for_another_one() -> None:
    """Its event has no digest, so any other secret counted as the same, and was dropped without a word."""
    run = make_run("locked")
    signals.send(run, "code", {"by": "Ann", "pin": "1234"}, key="k", by=actors.SYSTEM)
    assert advance_to_rest(run).status == "completed"
    keep(run, keep_last=1)
    pruned()
    with pytest.raises(SignalRemoved):
        signals.send(run, "code", {"by": "Ann", "pin": "5678"}, key="k", by=actors.SYSTEM)
