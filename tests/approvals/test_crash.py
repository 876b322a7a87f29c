"""A process that is killed between two statements of a decision leaves nothing half."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from approvals.models import Decision, Gate, Outcome
from checkpoints.models import Event, Hold
from tests.factories import ann, decide, edit_amount, make_gate, make_team
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE

# Decides, and kills itself just before the statement that names `table` is sent.
PROGRAM = """
import os, signal, sys
import django
django.setup()
import psycopg
from django.contrib.auth.models import User
import tests.factories as factories
from approvals.models import Gate

gate, user, verb, table = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]

execute = psycopg.Cursor.execute

def killer(cursor, query, *args, **options):
    text = query.decode() if isinstance(query, bytes) else str(query)
    if f"{verb} {table}" in text.replace('"', ""):
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(cursor, query, *args, **options)

gate = Gate.objects.get(pk=gate)
arguments = factories.edit_amount(gate, "80.00")
person = User.objects.get(pk=user)
psycopg.Cursor.execute = killer  # below the ORM, so that statements past it are met too
factories.decide(gate, person, "edit", arguments=arguments, key="before the crash")
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


@pytest.mark.parametrize(("verb", "table"), STATEMENTS)
def test_a_decision_killed_between_two_statements_leaves_nothing_half_and_can_be_made_again(
    verb: str, table: str
) -> None:
    team = make_team()
    gate = make_gate(team=team)
    person = ann(team)
    before = Gate.objects.values().get(pk=gate.pk)
    events = Event.objects.filter(run_id=gate.run_id).count()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(gate.pk), str(person.pk), verb, table],
        cwd=ROOT,
        env={
            "DJANGO_SETTINGS_MODULE": "config.settings",
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert Gate.objects.values().get(pk=gate.pk) == before
    assert Event.objects.filter(run_id=gate.run_id).count() == events
    assert not Decision.objects.filter(gate=gate).exists()
    assert not Outcome.objects.filter(gate=gate).exists()
    assert gate.proposals.count() == 1
    assert Hold.objects.standing().filter(subject=gate.subject).count() == 1
    decide(gate, person, "edit", arguments=edit_amount(gate, "80.00"), key="before the crash")
    assert Outcome.objects.get(gate=gate).kind == "edited"
