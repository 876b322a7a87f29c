"""A process that is killed between two statements of a decision leaves nothing half."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest

from approvals.models import Decision, Gate, Outcome
from checkpoints.models import Event, Hold
from tests.factories import ann, decide, edit_amount, make_gate, make_team
from tests.harness.services import Talking

# For each line forks a process that decides, and kills itself just before the statement that names `table` is sent.
PROGRAM = """
import os, signal, sys
import django
django.setup()
import psycopg
from django.contrib.auth.models import User
import tests.factories as factories
from approvals.models import Gate

execute = psycopg.Cursor.execute

def killer(cursor, query, *args, **options):
    text = query.decode() if isinstance(query, bytes) else str(query)
    if f"{verb} {table}" in text.replace('"', ""):
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(cursor, query, *args, **options)

for line in sys.stdin:
    gate, user, verb, table = line.strip().split(",")
    if (pid := os.fork()) == 0:
        gate = Gate.objects.get(pk=gate)
        arguments = factories.edit_amount(gate, "80.00")
        person = User.objects.get(pk=user)
        psycopg.Cursor.execute = killer  # below the ORM, so that statements past it are met too
        factories.decide(gate, person, "edit", arguments=arguments, key="before the crash")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
STATEMENTS = [
    ("UPDATE", "approvals_gate"),
    ("INSERT INTO", "approvals_proposal"),
    ("INSERT INTO", "approvals_decision"),
    ("INSERT INTO", "approvals_outcome"),
    ("INSERT INTO", "approvals_grant"),
    ("UPDATE", "checkpoints_hold"),
    ("INSERT INTO", "checkpoints_event"),
    ("UPDATE", "checkpoints_run"),
]


@pytest.fixture(scope="module")
def program() -> Iterator[Talking]:
    """The program above, without a connection of its own that its children would inherit."""
    process = Talking(sys.executable, "-c", PROGRAM, env={"DJANGO_SETTINGS_MODULE": "config.settings"})
    yield process
    process.close()


@pytest.mark.parametrize(("verb", "table"), STATEMENTS)
def test_a_decision_killed_between_two_statements_leaves_nothing_half_and_can_be_made_again(
    verb: str, table: str, program: Talking
) -> None:
    team = make_team()
    gate = make_gate(team=team)
    person = ann(team)
    before = Gate.objects.values().get(pk=gate.pk)
    events = Event.objects.filter(run_id=gate.run_id).count()
    assert program.tell(f"{gate.pk},{person.pk},{verb},{table}") == f"{-signal.SIGKILL}\n"
    assert Gate.objects.values().get(pk=gate.pk) == before
    assert Event.objects.filter(run_id=gate.run_id).count() == events
    assert not Decision.objects.filter(gate=gate).exists()
    assert not Outcome.objects.filter(gate=gate).exists()
    assert gate.proposals.count() == 1
    assert Hold.objects.standing().filter(subject=gate.subject).count() == 1
    decide(gate, person, "edit", arguments=edit_amount(gate, "80.00"), key="before the crash")
    assert Outcome.objects.get(gate=gate).kind == "edited"
