"""At the end of an undo window one of two wins, and the other is told so; a killed process leaves nothing half."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from approvals.decisions.undoing.settle import settle
from approvals.decisions.undoing.take_back import take_back
from approvals.errors import AlreadyDecided, NothingToUndo, UndoTooLate
from approvals.models import Decision, Gate, Grant, Outcome
from checkpoints import crash_points
from checkpoints.models import Event, Run
from tests.factories import ann, bob, decide, make_team
from tests.harness.racing_threads import race
from tests.harness.services import run

from .windows import make_held, now, pass_window

Calls = list[Callable[[], Any]]


def test_an_undo_that_races_the_end_of_the_window_undoes_all_or_is_told_that_it_is_too_late() -> None:
    team = make_team()
    person = ann(team)
    ends = set()
    for turn in range(12):
        gate = make_held(team)
        decide(gate, person)
        pass_window(gate)
        calls: Calls = [partial(settle, now(gate)), partial(take_back, now(gate), by=person)]
        results = race(calls if turn % 2 else calls[::-1])
        undone = any(isinstance(result, Decision) for result in results)
        closed = Outcome.objects.filter(gate=gate).exists()
        assert undone != closed
        assert Grant.objects.filter(outcome__gate=gate).count() == (2 if closed else 0)
        assert Run.objects.get(pk=gate.run_id).status == ("queued" if closed else "waiting")
        assert Decision.objects.get(gate=gate).counts == closed
        assert any(isinstance(result, UndoTooLate) for result in results) == closed
        ends.add(closed)
    assert ends


def test_a_vote_that_races_the_end_of_the_window_is_counted_or_is_told_who_decided() -> None:
    team = make_team()
    first, second = ann(team), bob(team)
    for _ in range(8):
        gate = make_held(team)
        decide(gate, first)
        pass_window(gate)
        results = race([partial(settle, now(gate)), partial(decide, gate, second, "reject")])
        if any(isinstance(result, AlreadyDecided) for result in results):
            assert Outcome.objects.get(gate=gate).kind == "approved"
        else:
            assert now(gate).settles_as == "rejected"
            assert not Outcome.objects.filter(gate=gate).exists()


def test_of_two_undos_at_once_one_takes_it_back() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    results = race([partial(take_back, now(gate), by=person) for _ in range(4)])
    assert sum(isinstance(result, Decision) for result in results) == 1
    assert sum(isinstance(result, NothingToUndo) for result in results) == 3
    assert Event.objects.filter(subject=gate.subject, kind="gate.undone").count() == 1


def test_two_sweepers_end_a_window_once() -> None:
    team = make_team()
    gate = make_held(team)
    decide(gate, ann(team))
    pass_window(gate)
    results = race([partial(settle, now(gate)) for _ in range(4)])
    assert sorted(results) == [False, False, False, True]
    assert Event.objects.filter(subject=gate.subject, kind="gate.closed").count() == 1


PROGRAM = """
import sys, django
django.setup()
from django.contrib.auth.models import User
from approvals.decisions.undoing.settle import settle
from approvals.decisions.undoing.take_back import take_back
from approvals.models import Gate
gate = Gate.objects.get(pk=int(sys.argv[1]))
settle(gate) if sys.argv[2] == "0" else take_back(gate, by=User.objects.get(pk=int(sys.argv[2])))
"""


@pytest.mark.parametrize("point", ["before_settled", "after_settled", "before_undone", "after_undone"])
def test_a_process_killed_there_leaves_the_gate_as_it_was_and_the_next_one_does_it(point: str) -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    pass_window(gate)
    before = Gate.objects.values().get(pk=gate.pk)
    events = Event.objects.filter(subject=gate.subject).count()
    undoes = "undone" in point
    wish = {"DJANGO_SETTINGS_MODULE": "config.settings", "HOLDPOINT_CRASH": f"{point}:kill"}
    killed = run(sys.executable, "-c", PROGRAM, str(gate.pk), str(person.pk if undoes else 0), env=wish)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert Gate.objects.values().get(pk=gate.pk) == before
    assert Event.objects.filter(subject=gate.subject).count() == events
    assert not Outcome.objects.filter(gate=gate).exists()
    assert Decision.objects.get(gate=gate).counts
    if undoes:
        take_back(now(gate), by=person)
        assert now(gate).settles_at is None
    else:
        assert settle(now(gate))
        assert Outcome.objects.get(gate=gate).kind == "approved"


def test_an_undo_just_before_the_end_takes_the_vote_out_though_another_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The votes were counted before the gate's row was locked: the outcome named whoever had taken theirs back."""
    team = make_team()
    gate, first = make_held(team), ann(team)
    decide(gate, first)
    decide(gate, bob(team))
    pass_window(gate)

    def undo(name: str, step: str, value: Any) -> None:
        if name == "before_settled":
            monkeypatch.setattr(crash_points, "_listeners", [])
            [undone] = race([partial(take_back, now(gate), by=first)])
            assert isinstance(undone, Decision)

    monkeypatch.setattr(crash_points, "_listeners", [undo])
    assert not settle(now(gate))
    assert settle(now(gate))
    assert [each.user.first_name for each in Outcome.objects.get(gate=gate).decisions.all()] == ["Bob"]
