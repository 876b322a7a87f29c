"""Retention removes the signals and waits of ended runs that no remaining checkpoint needs.

A rewind after it reads what it would have read without it.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.template.defaultfilters import filesizeformat

from agents.models import Signal, Wait
from agents.moves import fork, rewind
from agents.serving import timers
from agents.waits import signals
from agents.work_errors import SignalConflict
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
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state
from tests.harness import services
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


def test_a_run_that_can_go_on_from_nowhere_keeps_none() -> None:
    run = relayed()
    keep(run, keep_last=1)
    pruned()
    assert (seqs(run), kept(run), Wait.objects.filter(run=run).count()) == ([3], [], 0)


def test_all_stay_while_the_input_is_kept() -> None:
    run = relayed()
    keep(run, keep_last=1, keep_decisions=True)
    pruned()
    assert (seqs(run), kept(run)) == ([1, 3], [10, 20, 30, 40])


def test_a_live_run_keeps_all() -> None:
    run = make_run("relay")
    sent(run, 10, 20)
    assert advance_to_rest(run).status == "waiting"
    keep(run, keep_last=1)
    pruned()
    assert kept(run) == [10, 20]
    assert unneeded_rows.find(run, reading.history_of(run.pk), [1]) == []


def test_a_timer_goes_with_the_checkpoint_from_which_its_step_was_sent_on(tmp_path: Any) -> None:
    run = advance(make_run("sleeper", ledger=str(tmp_path / "ledger")))
    Wait.objects.filter(run=run).update(due=Now())
    Run.objects.filter(pk=run.pk).update(wake_at=Now())
    timers.wake_timers()
    advance(run)
    run.cancel(by=actors.SYSTEM)
    keep(run, keep_last=1)
    pruned()
    assert not Wait.objects.filter(run=run).exists()


@pytest.mark.parametrize(
    ("last", "named", "moves"),
    [
        (1, (3,), ()),
        pytest.param(2, (2,), (("rewind", 2),), marks=pytest.mark.long),
        (3, (), (("edit", 1), ("rewind", 3))),
        pytest.param(1, (1,), (("rewind", 1), ("edit", 2)), marks=pytest.mark.long),
        (1, (2, 4), (("rewind", 1), ("edit", 2), ("edit", 1))),
        pytest.param(2, (), (("edit", 1), ("edit", 1)), marks=pytest.mark.long),
    ],
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


def test_what_a_step_would_find_again_stays() -> None:
    run = make_run("relay")
    sent(run, 10, 20)
    advance_to_rest(run)
    run.cancel(by=actors.SYSTEM)
    keep(run, keep_last=1)
    pruned()
    assert (seqs(run), kept(run)) == ([2], [])
    assert list(Wait.objects.filter(run=run).values_list("step", "name")) == [("hear", "health")]


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


def test_nothing_of_a_held_run_is_found() -> None:
    run = relayed()
    holds.hold(run, None, "Lawsuit", by=SYSTEM)
    assert unneeded_rows.find(run, reading.history_of(run.pk), [1, 2]) == []


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


def test_a_prune_that_is_killed_while_it_removes_them_is_gone_on_with() -> None:
    keep(relayed(), keep_last=2)
    pruned()  # so that it is killed at this run and no other one
    run = relayed()
    killed = services.run(
        *services.manage("prune", "--json"), env={"HOLDPOINT_CRASH": f"{crash_points.OF_UNNEEDED}:kill:1"}
    )
    assert killed.returncode == -9, killed.stderr
    assert (seqs(run), kept(run)) == ([2, 3], [10, 20, 30, 40])
    done = services.run(*services.manage("prune"))
    assert done.returncode == 0, done.stderr
    assert "and 4 signals and waits" in done.stdout
    assert kept(run) == [30, 40]


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


def test_what_an_earlier_prune_left_goes_with_no_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(relayed(), keep_last=2)
    pruned()
    run = relayed()
    with monkeypatch.context() as patched:
        patched.setattr(unneeded_rows, "_finders", [])
        pruned()
    assert (seqs(run), kept(run)) == ([2, 3], [10, 20, 30, 40])
    prune = looked()
    assert (prune.checkpoints, prune.signals_and_waits) == (0, {"shown": 4, "gone": 0})
    client = confirmed(make_user("Root", superuser=True))
    address = f"/admin/checkpoints/prune/{prune.pk}/"
    page = client.get(f"{address}change/").content.decode()
    assert "4 signals and waits of ended runs, which no checkpoint that is kept needs." in text_of(page)
    assert 'value="Delete signals and waits"' in page
    assert client.post(f"{address}applications/", {"seen": bytes(prune.digest).hex()})
    prune.refresh_from_db()
    assert (prune.status, prune.signals_and_waits) == (Prune.Status.DONE, {"shown": 4, "gone": 4})
    assert "So were 4 signals and waits." in text_of(client.get(f"{address}change/").content.decode())
    assert kept(run) == [30, 40]


def test_their_bytes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prune of signals alone was to free nothing, and freed nothing, whatever their size."""
    keep(relayed(), keep_last=2)
    pruned()
    run = relayed()
    with monkeypatch.context() as patched:
        patched.setattr(unneeded_rows, "_finders", [])
        pruned()
    prune, value = looked(), len(b'{"percent":10}')
    assert (prune.size, prune.lines.get(run=run).size) == (4 * reading.ROW + 2 * value,) * 2
    page = confirmed(make_user("Root", superuser=True)).get(f"/admin/checkpoints/prune/{prune.pk}/change/")
    assert text_of(f"About {filesizeformat(prune.size)} will be freed.") in text_of(page.content.decode())
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)
    prunes.apply(prune)
    assert (prune.status, prune.freed, prune.lines.get(run=run).freed) == ("done", prune.size, prune.size)


def test_what_another_process_has_removed_frees_nothing_again() -> None:
    run = relayed()
    history = reading.history_of(run.pk)
    found = unneeded_rows.find(run, history, [1])
    sizes = [row.size for bundle in found for row in bundle]
    assert unneeded_rows.find(run, history, [1]) == found
    with transaction.atomic():
        assert unneeded_rows.remove(run.pk, history, found[:1]) == (2, sum(sizes[:2]))
    with transaction.atomic():
        assert unneeded_rows.remove(run.pk, history, found) == (2, sum(sizes[2:]))


def test_the_dry_run_says_what_goes_and_a_stopped_prune_removes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(relayed(), keep_last=2)
    pruned()
    run = relayed()
    prune = looked()
    [told] = [each for each in prune_report.lines(prune) if each.line.run_id == run.pk]
    assert "1 go (1), and 4 signals and waits;" in told.words
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)

    def stop(name: str, step: str = "", value: Any = None) -> None:
        if (name, step) == (crash_points.OF_UNNEEDED, str(run.pk)):
            elsewhere(lambda: prunes.stop(Prune.objects.get(pk=prune.pk), by=SYSTEM)).join()

    monkeypatch.setattr(crash_points, "point", stop)
    assert prunes.apply(prune)
    assert (prune.status, prune.signals_and_waits["gone"], kept(run)) == ("stopped", 0, [10, 20, 30, 40])


def test_a_prune_of_signals_alone_shows_how_far_it_is_and_its_events_count_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page named no run above its table and stood at 0 %, and the audit counted nothing of what went."""
    keep(relayed(), keep_last=2)
    pruned()
    run = relayed()
    with monkeypatch.context() as patched:
        patched.setattr(unneeded_rows, "_finders", [])
        pruned()
    monkeypatch.setattr(unneeded_rows, "BATCH", 1)
    prune, client = looked(), confirmed(make_user("Root", superuser=True))
    address = f"/admin/checkpoints/prune/{prune.pk}/change/"
    assert "Of 1 run: 4 signals and waits" in text_of(client.get(address).content.decode())
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)

    def stop(name: str, step: str = "", value: Any = None) -> None:
        if (name, step) == (crash_points.OF_UNNEEDED, str(run.pk)) and len(kept(run)) == 2:
            elsewhere(lambda: prunes.stop(Prune.objects.get(pk=prune.pk), by=SYSTEM)).join()

    with monkeypatch.context() as patched:
        patched.setattr(crash_points, "point", stop)
        assert prunes.apply(prune)
    assert "Signals and waits: 2 of 4." in text_of(client.get(address).content.decode())
    Prune.objects.filter(pk=prune.pk).update(status=Prune.Status.APPLYING)
    assert 'value="50"' in client.get(address).content.decode()
    prune.refresh_from_db()
    assert prunes.apply(prune)
    told = Event.objects.filter(subject=f"prune:{prune.pk}").order_by("pk")
    assert [(each.kind, decode_canonical(bytes(each.data))["signals_and_waits"]) for each in told] == [
        ("retention.ordered", 4), ("retention.stopped", 2), ("retention.finished", 4),
    ]  # fmt: skip
    cleared = Event.objects.filter(run_id=run.pk, kind="retention.cleared")
    assert [decode_canonical(bytes(each.data))["signals_and_waits"] for each in cleared] == [2, 2]


def test_a_policy_that_is_switched_off_meanwhile_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    run = relayed()
    keep(run, keep_last=2)

    def off(name: str, step: str = "", value: Any = None) -> None:
        if (name, step) == ("prune_removed", str(run.pk)):
            keep(run, keep_last=2, enabled=False)

    monkeypatch.setattr(crash_points, "point", off)
    pruned()
    assert (seqs(run), kept(run)) == ([2, 3], [10, 20, 30, 40])
