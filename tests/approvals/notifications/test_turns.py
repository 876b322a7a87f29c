"""Who hears that a gate asks for their approval: in their turn, anew when it comes again, and never twice."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.assignments.reassigning import reassign
from approvals.decisions.undo_window import take_back
from approvals.errors import NotAllowed
from approvals.models import Gate, Message
from approvals.notifications import delivering, fan_out
from tests.approvals.policy.test_stages import stage
from tests.factories import ann, bob, decide, edit_amount, make_gate, make_policy, make_team, make_user
from tests.harness import horizon

from .mail_server import MailServer
from .told import abandoned, fanned, people, rows

HOUR = dt.timedelta(hours=1)


class Chain:
    """One of Support, then one of Legal, of whom all were told what was to be told."""

    def __init__(self, **policy: Any) -> None:
        self.support, self.legal = make_team(), make_team("Legal")
        self.ann, self.bob, self.lee = ann(self.support), bob(self.support), make_user("Lee", self.legal)
        stages = [stage((1, [self.support], [])), stage((1, [self.legal], []))]
        self.gate: Gate = make_gate(policy=make_policy(self.support, stages=stages, **policy))
        fanned()

    def mailed(self, server: MailServer) -> int:
        """How many mails Lee has."""
        fanned()
        delivering.deliver("email", seconds=5.0)
        return server.recipients.count(self.lee.email)

    def asked(self, person: User) -> list[str]:
        """What became of the messages by which this person is asked."""
        fanned()
        return [status for kind, name, status, _ in rows(self.gate) if (kind, name) == ("asked", person.first_name)]


def test_whoever_is_asked_again_after_the_turn_went_back_hears_of_it_once(mails: MailServer) -> None:
    """A message that was dropped as the turn went back counted as told, so that the next stage never heard."""
    chain = Chain(undo_window=dt.timedelta(minutes=2))
    decide(chain.gate, by=chain.ann)
    assert chain.asked(chain.lee) == ["pending"]
    take_back(chain.gate, by=chain.ann)
    assert chain.mailed(mails) == 0
    assert chain.asked(chain.lee) == ["dropped"]
    decide(chain.gate, by=chain.ann)
    assert chain.mailed(mails) == 1


def test_whose_approval_ended_as_the_turn_went_back_is_asked_once() -> None:
    """They were named by the edit, and were among those whom the gate asked anew."""
    chain = Chain()
    decide(chain.gate, by=chain.ann)
    fanned()
    Message.objects.filter(gate=chain.gate).update(status="sent", next_attempt_at=None)
    decide(chain.gate, chain.lee, "edit", arguments=edit_amount(chain.gate, "80.00"))
    assert chain.asked(chain.ann) == ["sent", "pending"]


def test_a_message_that_still_waits_is_not_written_a_second_time() -> None:
    chain = Chain()
    decide(chain.gate, by=chain.ann)
    assert chain.asked(chain.lee) == ["pending"]
    decide(chain.gate, chain.bob, "edit", arguments=edit_amount(chain.gate, "80.00"))  # the turn is Legal's again
    assert chain.asked(chain.lee) == ["pending"]


def test_whose_place_is_asked_again_is_told_though_they_came_later() -> None:
    """The row asked Support again, and no event said so: no message, and no row on any open page."""
    chain = Chain()
    decide(chain.gate, by=chain.ann)
    fanned()
    late = make_user("Newcomer", chain.support)
    chain.ann.groups.clear()
    with pytest.raises(NotAllowed):
        decide(chain.gate, by=chain.lee)
    assert Gate.objects.get(pk=chain.gate.pk).awaits == [chain.support.pk]
    assert chain.asked(late) == ["pending"]


def test_to_whom_a_gate_is_handed_is_told_also_before_their_turn() -> None:
    chain = Chain()
    reassign(chain.gate, to=chain.lee, reason="You know the customer.", by=chain.ann)
    fanned()
    assert people(chain.gate, "mention") == {"Lee"}


def test_nobody_has_two_reminders_where_the_next_role_is_asked() -> None:
    support, legal = make_team(), make_team("Legal")
    first, _lee = ann(support), make_user("Lee", legal)
    stages = [stage((1, [support], []), (1, [legal], []))]
    gate = make_gate(policy=make_policy(support, stages=stages, deadline=4 * HOUR))
    fanned()
    decide(gate, by=first)
    fanned()
    assert [each[1] for each in rows(gate) if each[0] == "reminder"].count("Lee") == 1


def test_a_message_that_kills_its_sender_takes_no_others_with_it(mails: MailServer) -> None:
    """A batch was counted as tried with each death, so that ten good mails were given up with one bad one."""
    team: Group = make_team()
    for number in range(10):
        make_user(f"Reader{number}", team)
    make_gate(team=team)
    fanned()
    for taken in (10, 10, *[1] * 12):  # each time by another sender, which dies
        assert len(Message.objects.take("email", 100)) == taken
        abandoned()
    delivering.deliver("email", seconds=5.0)
    assert len(mails.mails) == 10


def test_whom_a_slow_reader_of_events_asked_ahead_is_not_asked_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The opening was read when the turn was Legal's already: they were asked, and again by the event of the turn."""
    chain = Chain()
    Message.objects.all().delete()
    gate = make_gate(policy=chain.gate.policy)
    decide(gate, by=chain.ann)
    monkeypatch.setattr(fan_out, "MATTERING", 1)
    horizon.reached()
    fan_out.fan_out()
    told = Message.objects.filter(gate=gate, kind="asked", user=chain.lee)
    assert told.update(status="sent", next_attempt_at=None) == 1
    fanned()
    assert told.count() == 1
    assert Gate.objects.get(pk=gate.pk).turn == 1
