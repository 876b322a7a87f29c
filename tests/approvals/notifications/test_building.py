"""What a message says of a gate: what its policy lets leave the house, and nothing beyond."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.cards.action import Action
from approvals.gates.reading import with_reviewers
from approvals.models import Gate, Outcome
from approvals.notifications import building
from approvals.notifications.message import NoticeKind, NoticeMessage, Urgency
from tests.factories import ann, decide, make_action, make_card, make_gate, make_policy, make_team

REACHED = {"number": 0, "title": 1, "facts": 2, "all": 3}


def built(gate: Gate, kind: NoticeKind = NoticeKind.ASKED, **more: Any) -> NoticeMessage:
    [read] = with_reviewers({gate.pk})
    return building.of_gate(read, read.standing(), kind, urgency=Urgency.NORMAL, **more)


def gate_that_lets(leaves: str, **card: Any) -> Gate:
    policy = make_policy(make_team(), name="default")
    policy.leaves = leaves
    policy.save(update_fields=["leaves"])
    return make_gate(policy=policy, team=policy.team, card=make_card(**card))


@pytest.mark.parametrize("leaves", list(REACHED))
def test_a_message_holds_what_the_policy_lets_leave(leaves: str) -> None:
    message = built(gate_that_lets(leaves, resource="order 20417"))
    whole = repr(message)
    levels = {"Refund €120.00": 1, "Marit Ellery": 2, "order 20417": 2, "Medium": 2}
    for said, level in levels.items():
        assert (said in whole) == (REACHED[leaves] >= level), said
    assert bool(message.sections) == (leaves == "all")
    assert message.link.endswith(f"/gates/{message.gate}/")


def test_all_means_no_secret() -> None:
    schema = {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "password": {"type": "string", "writeOnly": True},
        },
    }
    action = Action(
        id="mail", title="Send", tool="mail.send", schema=schema, arguments={"to": "marit", "password": "hunter2"}
    )
    said = repr(list(building.values(action)))
    assert "marit" in said
    assert "hunter2" not in said


def test_long_and_many_values_are_counted_and_cut() -> None:
    values = {f"field {n:02}": "x" * 1000 for n in range(40)}
    action = Action(id="big", title="Big", tool="big", arguments=values)
    [section] = built(gate_that_lets("all", actions=[action])).sections
    assert len(section.facts) == 26
    assert "and 700 more characters" in section.facts[0].value
    assert "15 more values" in section.facts[-1].value
    many = built(
        gate_that_lets(
            "all", actions=[make_action(id=f"refund{n}", effect="", pointer="", pinned=[]) for n in range(12)]
        )
    )
    assert len(many.sections) == 11
    assert "2 more" in next(each.value for each in many.facts if each.label == "Actions")


def test_hidden_characters_are_spelled_out() -> None:
    message = built(gate_that_lets("title", title="Pay\u202e 99 to \u200bEve"))
    assert "\u202e" not in message.subject
    assert "\u200b" not in message.title


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (NoticeKind.ASKED, "Decision needed: Refund €120.00 to Marit"),
        (NoticeKind.REMINDER, "Still waiting for a decision: Refund €120.00 to Marit"),
        (NoticeKind.MENTION, "Bob mentioned you: Refund €120.00 to Marit"),
    ],
)
def test_the_subject_says_what_happened(kind: NoticeKind, said: str) -> None:
    assert built(gate_that_lets("title"), kind, by="Bob").subject == said


def test_an_end_says_who_and_how_and_asks_for_nothing() -> None:
    gate = gate_that_lets("title")
    decide(gate, by=ann(gate.team))
    message = built(gate, NoticeKind.DECIDED, outcome=Outcome.objects.get(gate=gate))
    assert message.subject == "Approved by Ann Okafor. Refund €120.00 to Marit"
    assert (message.ended, message.deadline, message.button) == ("Approved by Ann Okafor.", None, "See the gate")


def test_where_only_the_number_may_leave_nobody_is_named_and_no_verdict() -> None:
    """The mail said who had rejected the gate, and a mention by whom."""
    gate = gate_that_lets("number")
    decide(gate, ann(gate.team), "reject")
    message = built(gate, NoticeKind.DECIDED, outcome=Outcome.objects.get(gate=gate))
    assert (message.ended, message.subject) == ("This gate has ended.", f"This gate has ended. gate {gate.pk}")
    assert built(gate, NoticeKind.MENTION, by="Bob").subject == f"Somebody mentioned you: gate {gate.pk}"


@pytest.mark.parametrize("kind", list(Outcome.Kind), ids=str)
def test_every_end_has_its_words(kind: Outcome.Kind) -> None:
    words = building.how_it_ended(Outcome(kind=kind, by="user:7", by_name="Ann"))
    assert words.endswith(".")
    assert ("Ann" in words) == (kind not in (Outcome.Kind.EXPIRED, Outcome.Kind.WITHDRAWN))
