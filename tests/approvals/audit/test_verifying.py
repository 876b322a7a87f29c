"""A verification is work in slices, of any worker, done once however often it is rung for or whoever dies in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from approvals.audit import seal_verification
from checkpoints import crash_points
from checkpoints.actors import Actor
from checkpoints.audit.database import VerificationWalk
from checkpoints.models import Event, Verification
from tests.checkpoints.audit.sealed_events import forged, say, seal_all, three
from tests.harness.racing_threads import race
from tests.harness.services import run

pytestmark = pytest.mark.whole_database
ANN = Actor("user:7", "Ann")


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    Verification.objects.underway().delete()
    yield
    Verification.objects.underway().delete()


def fresh(asked: Verification) -> Verification:
    return Verification.objects.get(pk=asked.pk)


def told(asked: Verification) -> list[dict[str, int]]:
    events = Event.objects.filter(kind="audit.verified", subject=f"verification:{asked.pk}")
    return [json.loads(bytes(event.data)) for event in events]


def test_it_goes_through_everything_and_says_so_in_the_audit() -> None:
    three()
    asked = Verification.objects.ask(by=ANN)
    assert seal_verification.go_on(asked.pk)
    done = fresh(asked)
    assert (done.status, done.faults, done.problems()) == ("passed", 0, [])
    assert done.seals == done.of > 0
    assert done.events > 2
    assert told(asked) == [{"seals": done.seals, "events": done.events, "faults": 0, "upto": done.of}]
    event = Event.objects.get(kind="audit.verified", subject=f"verification:{asked.pk}")
    assert (event.actor, event.actor_name) == ("user:7", "Ann")
    assert not seal_verification.go_on(asked.pk)
    assert len(told(asked)) == 1


def test_it_goes_on_slice_by_slice_where_it_was_put_down(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        three()
    whole = VerificationWalk.step
    monkeypatch.setattr(VerificationWalk, "step", lambda self: whole(self, events=1))
    asked = Verification.objects.ask(by=ANN)
    seals: list[int] = []
    while seal_verification.go_on(asked.pk, within=0):
        seals.append(fresh(asked).seals)
    assert fresh(asked).status == "passed"
    walked = sorted(set(seals))
    assert (seals, walked) == (sorted(seals), list(range(1, len(walked) + 1)))  # the rows that they cover come last
    assert fresh(asked).seals == fresh(asked).of == len(walked)


def test_only_one_worker_has_it_in_hand_and_one_that_was_thought_dead_writes_nothing() -> None:
    three()
    asked = Verification.objects.ask(by=ANN)
    one, other = fresh(asked), fresh(asked)
    assert one.take()
    assert not other.take()
    assert Verification.objects.idle().count() == 0
    Verification.objects.filter(pk=asked.pk).update(busy_until=Now())
    assert other.take()
    assert not one.put_down({"seals": 99}, [], total=99)
    assert not one.end({"seals": 99}, [])
    assert fresh(asked).seals == 0
    assert other.end({"seals": 1}, [])
    assert told(asked)[0]["seals"] == 1


def test_ten_who_ask_at_once_get_one_that_names_what_it_finds() -> None:
    found = race([lambda: Verification.objects.ask(by=ANN).pk] * 10)
    assert len(set(found)) == 1, found
    _, event, _, _ = three()
    asked = Verification.objects.ask(by=ANN)
    with forged(f"UPDATE checkpoints_event SET actor = 'user:8' WHERE id = {event.pk}"):
        seal_verification.go_on(asked.pk)
    done = fresh(asked)
    assert (done.status, done.faults) == ("failed", 1)
    assert [problem.subject for problem in done.problems()] == [f"event {event.pk}"]
    assert Verification.objects.underway().count() == 0


def test_one_that_cannot_be_finished_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    say()
    seal_all()
    asked = Verification.objects.ask(by=ANN)

    def broken(self: VerificationWalk) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(VerificationWalk, "step", broken)
    seal_verification.go_on(asked.pk)
    assert [str(each) for each in fresh(asked).problems()] == ["the verification: could not be finished: ValueError"]
    assert fresh(asked).status == "failed"


STEPS = """
import django; django.setup()
from checkpoints.audit.database import VerificationWalk
step = VerificationWalk.step
VerificationWalk.step = lambda self: step(self, events=1)
"""  # a seal a step: else all that a test writes is one
TASK = "from approvals.audit import seal_verification\nwhile seal_verification.go_on({asked}, within={within}): pass"


def killed(script: str, *, hit: int) -> subprocess.CompletedProcess[str]:
    """What a process says that is killed after so many steps of a verification."""
    wish = {"HOLDPOINT_CRASH": f"{crash_points.OF_AUDITS}:kill:{hit}", "DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-c", STEPS + script]
    done = run(*command, env=wish)
    assert done.returncode == -9, done.stderr
    return done


@pytest.mark.long
@pytest.mark.parametrize(("within", "kept"), [(0, 2), (600, 0)])
def test_a_worker_that_is_killed_in_a_slice_loses_that_slice_and_no_finding(within: int, kept: int) -> None:
    events = [three()[1] for _ in range(3)]
    asked = Verification.objects.ask(by=ANN)
    statements = [f"UPDATE checkpoints_event SET actor = 'user:8' WHERE id = {event.pk}" for event in events]
    with forged(*statements):
        killed(TASK.format(asked=asked.pk, within=within), hit=3)
        left = Verification.objects.get(pk=asked.pk)
        assert (left.status, left.seals) == ("underway", kept)
        assert not seal_verification.go_on(asked.pk), "whoever died may be thought alive for a while"
        assert not Event.objects.filter(kind="audit.verified", subject=f"verification:{asked.pk}").exists()
        Verification.objects.filter(pk=asked.pk).update(busy_until=Now())
        seal_verification.go_on(asked.pk, within=600)
        assert Event.objects.filter(kind="audit.verified", subject=f"verification:{asked.pk}").count() == 1
    done = Verification.objects.get(pk=asked.pk)
    assert (done.status, done.faults, done.seals) == ("failed", 3, done.of)
    assert {each.subject for each in done.problems()} == {f"event {event.pk}" for event in events}


def test_a_command_that_is_interrupted_says_what_is_not_verified(capsys: pytest.CaptureFixture[str]) -> None:
    """It ended in a traceback, and left to guess what had been looked at."""
    three()
    step, steps = VerificationWalk.step, 0

    def stepping(walk: VerificationWalk) -> object:
        nonlocal steps
        steps += 1
        if steps == 3:
            raise KeyboardInterrupt
        return step(walk, events=1)

    with mock.patch.object(VerificationWalk, "step", stepping), pytest.raises(CommandError) as raised:
        call_command("audit", "verify")
    assert raised.value.returncode == 130
    assert "2 seals were checked, up to seal" in str(raised.value)
    assert "are not verified. Go on with --since" in str(raised.value)
    assert "as they were written" not in capsys.readouterr().out
