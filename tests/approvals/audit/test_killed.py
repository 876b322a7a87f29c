"""A verification whose process dies in a slice: it goes on from where it was put down, or says nothing."""

from __future__ import annotations

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
from tests.checkpoints.audit.sealed_events import forged, three
from tests.harness.services import run

pytestmark = pytest.mark.whole_database

ANN = Actor("user:7", "Ann")
STEPS = """
import django; django.setup()
from checkpoints.audit.database import VerificationWalk
step = VerificationWalk.step
VerificationWalk.step = lambda self: step(self, events=1)
"""  # a seal a step: else all that a test writes is one
TASK = "from approvals.audit import seal_verification\nwhile seal_verification.go_on({asked}, within={within}): pass"
COMMAND = "from django.core.management import call_command\ncall_command('audit', 'verify')"


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """No other verification is under way."""
    Verification.objects.underway().delete()
    yield
    Verification.objects.underway().delete()


def killed(script: str, *, hit: int) -> subprocess.CompletedProcess[str]:
    """What a process says that is killed after so many steps of a verification."""
    wish = {"HOLDPOINT_CRASH": f"{crash_points.OF_AUDITS}:kill:{hit}", "DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-c", STEPS + script]
    done = run(*command, env=wish)
    assert done.returncode == -9, done.stderr
    return done


@pytest.mark.parametrize(("within", "kept"), [(600, 0), (0, 2)])
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


def test_a_command_that_is_killed_says_of_nothing_that_it_is_as_it_was_written() -> None:
    three()
    done = killed(COMMAND, hit=2)
    assert "as they were written" not in done.stdout + done.stderr
    call_command("audit", "verify")


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
