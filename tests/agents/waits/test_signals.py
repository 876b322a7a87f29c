"""Signals: kept when they come before the wait, read once each, and sent once for each key."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.models import Signal, Wait
from agents.moves import rewind
from agents.runner import engine
from agents.serving import sweeps
from agents.waits import signals
from agents.work_errors import RunEnded, SignalConflict, SignalsTooLarge, WorkInvalid
from checkpoints import actors, crash_points
from checkpoints.models import Event, Run
from checkpoints.store import named_files
from checkpoints.values import artifacts
from checkpoints.values.canonical_json import encode_canonical
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann, make_team
from tests.factories.driven_runs import advance, advance_to_rest, make_run, open_gate, state
from tests.harness.racing_threads import race
from tests.harness.sent_statements import sent


def send(run: Run, percent: int, *, key: str = "") -> tuple[Signal, bool]:
    """Send the run how healthy something is."""
    return signals.send(run, "health", {"percent": percent}, key=key or f"key-{percent}", by=actors.SYSTEM)


def test_a_run_waits_for_a_signal_and_gets_its_value_typed_and_one_that_comes_before_is_kept_for_it() -> None:
    run = advance(make_run("listener", count=2))
    assert (run.status, run.wake_at, run.reason) == ("waiting", None, "Waits for the signal health")
    send(run, 90)
    run.refresh_from_db()
    assert run.status == "queued"
    send(run, 20)
    advance(run)
    assert (state(run)["heard"], run.reason) == ([90, 20], "Waits for the signal go")


def test_a_step_that_starts_again_reads_all_its_earlier_waits_at_once() -> None:
    """Each earlier wait was a query of its own, whenever the step started: ten thousand at most."""
    run = make_run("listener", count=12)
    for percent in range(11):
        send(run, percent)
    advance(run)
    send(run, 99)
    with sent() as statements:
        advance(run)
    assert state(run)["heard"] == [*range(11), 99]
    looked_up = [each for each in statements if "agents_wait" in each and "LEFT OUTER JOIN" in each]
    assert len(looked_up) == 2, "one for each of the two steps that wait"


def test_a_signal_brings_a_file_of_its_own_team_and_none_of_another() -> None:
    """Whoever knew a digest sent it as a signal, a step saved it, and the next gate handed the file out."""
    run = advance_to_rest(make_run("receiver"))
    with artifacts.kept_for(make_team().pk):
        theirs = {"scan": artifacts.keep(b"theirs", "text/plain")}
    with pytest.raises(WorkInvalid) as refused:
        signals.send(run, "paper", theirs, key="a", by=actors.SYSTEM)
    assert refused.value.errors == [{"pointer": "/value/scan", "message": named_files.FOREIGN}]
    Signal.objects.create(
        run=run, name="paper", key="b", value=encode_canonical(theirs), by="x"
    )  # as taken by an older release
    run.wake(by=actors.SYSTEM)
    advance(run)
    assert (run.status, state(run)["paper"], open_gate(run).kind) == ("waiting", {}, "recovery")
    assert named_files.FOREIGN in open_gate(run).standing().card.summary
    own = advance_to_rest(make_run("receiver"))
    paper = {"scan": state(own)["own"]}
    signals.send(own, "paper", paper, key="a", by=actors.SYSTEM)
    assert (advance_to_rest(own).status, state(own)["paper"]) == ("completed", paper)
    with pytest.raises(RunEnded):
        signals.send(own, "paper", paper, key="b", by=actors.SYSTEM)


def test_the_same_key_is_one_signal() -> None:
    run = make_run("listener", count=2)
    first, new = send(run, 10, key="a")
    again, twice = send(run, 10, key="a")
    assert (first.pk, new, twice) == (again.pk, True, False)
    with pytest.raises(SignalConflict):
        send(run, 11, key="a")
    advance(run)
    assert run.status == "waiting"
    assert Event.objects.filter(kind="signal.received", run_id=run.pk).count() == 1


def test_of_many_who_send_one_key_at_once_one_makes_the_signal() -> None:
    run = advance(make_run("listener"))

    made = race([lambda: send(Run.objects.get(pk=run.pk), 50, key="same")[1]] * 5)
    assert sorted(made) == [False] * 4 + [True]
    assert Signal.objects.filter(run=run).count() == 1


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("health", {"percent": 101}, "/value/percent"),
        ("health", {}, "/value"),
        ("health", "fine", "/value"),
        ("other", None, "takes no signal other; it takes go, health"),
        ("go", 1, "/value"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(name: str, value: Any, told: str) -> None:
    run = make_run("listener")
    with pytest.raises(WorkInvalid, match=told):
        signals.send(run, name, value, key="k", by=actors.SYSTEM)
    assert not Signal.objects.filter(run=run).exists()


def test_the_values_of_a_run_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand signals of a megabyte each were 10 GB for one run."""
    run = make_run("listener")
    send(run, 10)
    monkeypatch.setattr(signals, "MOST_BYTES", 2 * len(b'{"percent":10}'))
    with pytest.raises(SignalsTooLarge, match="Send a smaller value, such as"):
        send(run, 100)
    assert send(run, 20)[1]
    assert not send(run, 20)[1]


def test_a_wait_that_was_too_long_stays_so_when_its_signal_comes_late() -> None:
    """The step started again, took the late signal for one in time, and left what it had done since."""
    run = advance(make_run("escalating"))
    Wait.objects.filter(run=run).update(due=Now())
    Run.objects.filter(pk=run.pk).update(wake_at=Now())
    sweeps.wake_timers()
    assert advance(run).reason == "Waits for the signal go"
    send(run, 10)
    signals.send(run, "go", None, key="k", by=actors.SYSTEM)
    assert advance_to_rest(run).status == "completed"
    assert (state(run)["took"], state(run)["later"]) == (["late"], 10)


def test_a_step_that_swallows_the_end_of_its_turn_waits_all_the_same() -> None:
    run = advance(make_run("listener", swallows=True))
    assert (run.status, run.next_step) == ("waiting", "listen")
    send(run, 70)
    advance(run)
    assert state(run)["heard"] == [70]


def test_no_step_reads_what_another_on_the_path_has_read() -> None:
    run = make_run("relay")
    for percent in (10, 20, 30, 40):
        send(run, percent)
    assert advance_to_rest(run).status == "completed"
    assert (state(run)["first"], state(run)["second"]) == ([10, 20], 30)
    rewind.rewind(run, to=1, by=ann(run.team))
    advance_to_rest(run)
    assert (state(run)["first"], state(run)["second"]) == ([10, 20], 30), "the same again"
    rewind.edit(run, at=2, patch=[{"op": "replace", "path": "/size", "value": 1}], by=ann(run.team))
    advance_to_rest(run)
    assert (state(run)["first"], state(run)["second"]) == ([10, 20], 30)  # the same, since only it runs again


def test_a_worker_that_is_killed_beside_a_signal(workers: KillableWorkers) -> None:
    run = make_run("listener", count=2)
    send(run, 10)
    workers.kill(run, "before_wait@listen")
    send(run, 20)
    go_on(run)
    assert state(run)["heard"] == [10, 20]


def test_a_signal_that_comes_as_the_run_falls_asleep_is_never_missed() -> None:
    """Whoever is first, the run's row decides: it finds the signal, or the signal finds it waiting."""
    for number in range(4):
        run = make_run("listener")
        race([partial(send, Run.objects.get(pk=run.pk), number), partial(engine.advance, run.pk)])
        advance_to_rest(run)
        assert (state(run)["heard"], run.next_step) == ([number], "go")


def test_a_signal_whose_sender_dies_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = advance(make_run("listener"))
    monkeypatch.setenv("HOLDPOINT_CRASH", f"after_signal:raise:1:{tmp_path / 'hits'}")
    with pytest.raises(crash_points.Crashed):
        send(run, 10, key="a")
    run.refresh_from_db()
    assert (Signal.objects.filter(run=run).count(), run.status) == (0, "waiting")
    assert send(run, 10, key="a")[1]
    run.refresh_from_db()
    assert run.status == "queued"
