"""Whoever comes second is told so, nobody decides twice, and a process that is killed leaves nothing half."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from approvals.errors import AlreadyDecided, GateExpired, GateWithdrawn
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Decision, Gate, Outcome
from checkpoints import actors
from checkpoints.models import Event, Hold
from tests.factories import ann, bob, decide, edit_amount, make_gate, make_policy, make_team, make_user
from tests.harness.racing_threads import race
from tests.harness.services import Talking


def test_of_twenty_racing_people_one_decides_and_the_others_are_told_who() -> None:
    team = make_team()
    gate = make_gate(team=team)
    people = [make_user(f"Reviewer {number}", team) for number in range(20)]
    seen = bytes(gate.standing().digest)
    results = race([partial(decide, gate, person, seen=seen) for person in people])
    winners = [result for result in results if isinstance(result, Decision)]
    losers = [result for result in results if isinstance(result, AlreadyDecided)]
    assert (len(winners), len(losers)) == (1, 19)
    told = f"{winners[0].user.get_full_name()} already decided this: Approved. No decision is needed any more."
    assert {str(loser) for loser in losers} == {told}
    assert gate.decisions.count() == 1
    assert Outcome.objects.get(gate=gate).grants.count() == 2
    refused = Event.objects.filter(subject=gate.subject, kind="decision.refused")
    assert refused.count() == 19
    assert all(b'"kind":"already_decided"' in bytes(event.data) for event in refused)


def test_an_approval_that_races_an_edit_never_counts_for_what_the_approver_did_not_see() -> None:
    team = make_team()
    policy = make_policy(team, quorum=2)
    editor, approver = ann(team), bob(team)
    for _ in range(2):
        gate = make_gate(policy=policy, team=team)
        seen, arguments = bytes(gate.standing().digest), edit_amount(gate, "80.00")
        edits = partial(decide, gate, editor, "edit", seen=seen, arguments=arguments)
        race([edits, partial(decide, gate, approver, seen=seen)])
        counted = Decision.objects.filter(gate=gate, counts=True).values_list("user", "proposal__number")
        assert list(counted) == [(editor.pk, 2)]
        assert Gate.objects.get(pk=gate.pk).status == "open"


def test_of_many_who_close_a_quorum_or_send_one_key_at_once_each_counts_once() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    people = [make_user(f"Reviewer {number}", team) for number in range(6)]
    results = race([partial(decide, gate, person) for person in people])
    assert sum(isinstance(result, Decision) for result in results) == 2
    assert Outcome.objects.get(gate=gate).decisions.count() == 2
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    person = ann(team)
    results = race([partial(decide, gate, person, key="a click")] * 20)
    assert {result.pk for result in results if isinstance(result, Decision)} == {gate.decisions.get().pk}
    assert len(results) == sum(isinstance(result, Decision) for result in results)
    assert Gate.objects.get(pk=gate.pk).version == 2


def test_a_decision_and_the_expiry_or_a_withdrawal_that_race_end_in_one_outcome() -> None:
    team = make_team()
    person, gate = ann(team), make_gate(team=team)
    pass_deadline(gate)
    expired, refused = race([partial(closing.expire, gate), partial(decide, gate, person)])
    assert isinstance(refused, GateExpired), "after the deadline the decision loses"
    assert Outcome.objects.get(gate=gate).kind == expired.kind == "expired"
    for _ in range(2):
        gate = make_gate(team=team)
        withdraw = partial(closing.withdraw, gate, by=actors.SYSTEM, reason="the run went another way")
        decided, withdrawn = race([partial(decide, gate, person), withdraw])
        kind = Outcome.objects.get(gate=gate).kind
        if isinstance(decided, Decision):
            assert (kind, withdrawn) == ("approved", None)
        else:
            assert (kind, isinstance(decided, GateWithdrawn)) == ("withdrawn", True)


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
