"""A decision and an opening stay cheap: statements cost more than anything else they do."""

from __future__ import annotations

import datetime as dt

from approvals.models import Gate
from checkpoints.models import Event, Run
from tests.factories import ann, bob, decide, make_gate, make_policy, make_team
from tests.harness.sent_statements import sent

OF_THE_FACTORY = 4  # `decide` reads the gate, what stands, its run and the effects of that for itself


def test_an_approval_that_closes_its_gate_takes_fourteen_statements() -> None:
    team = make_team()
    gate, person = make_gate(team=team), ann(team)
    with sent() as statements:
        decide(gate, person)
    assert len(statements) - OF_THE_FACTORY <= 14, statements
    assert not [each for each in statements if "SAVEPOINT" in each]


def test_a_quorum_of_five_costs_one_statement_more_at_its_last_voice() -> None:
    """The events of the voices before it, which they are held against."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=5, deadline=dt.timedelta(hours=1)))
    for _ in range(4):
        decide(gate, bob(team))
    person = ann(team)
    with sent() as statements:
        decide(gate, person)
    assert Gate.objects.get(pk=gate.pk).status == "decided"
    assert len(statements) - OF_THE_FACTORY <= 15, statements


def test_a_closed_gate_says_its_events_in_the_order_in_which_they_happened() -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team), comment="Fine.")
    events = Event.objects.filter(run_id=gate.run_id).order_by("id")
    told = [(event.kind, event.version) for event in events][-3:]
    run = Run.objects.get(pk=gate.run_id)
    assert told == [("gate.decided", 2), ("gate.closed", 3), ("run.queued", run.version)]
    assert len({event.xid for event in list(events)[-3:]}) == 1
