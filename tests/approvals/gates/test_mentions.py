"""People are mentioned by their username, among those who may see the gate."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from approvals.gates import mentions, remarks
from approvals.models import Gate
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical
from tests.approvals.assignments.test_away import lend
from tests.factories import ann, bob, eve, make_gate, make_policy, make_team, make_user
from tests.harness.signed_in_clients import signed_in


@pytest.fixture
def gate() -> Gate:
    """A gate of Support that Finance reviews."""
    team, finance = make_team(), make_team("Finance")
    made = make_gate(policy=make_policy(team, groups=(team, finance)))
    made.finance = finance  # type: ignore[attr-defined]
    return made


def told(gate: Gate) -> list[list[int]]:
    events = Event.objects.filter(subject=gate.subject, kind="gate.mentioned").order_by("pk")
    return [decode_canonical(bytes(each.data))["users"] for each in events]


def test_only_those_who_may_see_the_gate_are_mentioned(gate: Gate) -> None:
    mine, mate, outsider = ann(gate.team), bob(gate.team), eve()
    reviewer = make_user("Mira", gate.finance, may=("approvals.decide_gate",))  # type: ignore[attr-defined]
    others = f"@{outsider.username} @nobody x@{mate.username} @{mine.username}"
    remarks.remark(gate, by=mine, text=f"Hello {others}", key="k1")
    assert told(gate) == []
    remarks.remark(gate, by=mine, text=f"(@{mate.username.upper()}), @{reviewer.username}: {others}.", key="k2")
    assert told(gate) == [sorted([mate.pk, reviewer.pk])]
    remarks.remark(gate, by=mine, text=f"(@{mate.username.upper()}), @{reviewer.username}: {others}.", key="k2")
    assert len(told(gate)) == 1  # the same form twice
    mate.is_active = False
    mate.save()
    remarks.remark(gate, by=mine, text=f"@{mate.username}", key="k3")
    assert len(told(gate)) == 1


def test_completion_offers_the_same_people_and_an_outsider_gets_none(gate: Gate) -> None:
    mine, mate, outsider = ann(gate.team), bob(gate.team), eve()
    browser = signed_in(mine)
    page = browser.get(f"/gates/{gate.pk}/people/", {"q": "b"}).content.decode()
    assert f'data-name="{mate.username}"' in page
    assert outsider.username not in browser.get(f"/gates/{gate.pk}/people/").content.decode()
    assert mine.username not in browser.get(f"/gates/{gate.pk}/people/").content.decode()
    assert signed_in(outsider).get(f"/gates/{gate.pk}/people/").status_code == 404
    assert browser.get(f"/gates/{gate.pk}/people/", {"q": "%_"}).status_code == 200


def test_words_without_a_name_ask_the_database_nothing(gate: Gate) -> None:
    assert mentions.tell(gate, "plain words", by=ann(gate.team)) == []


def test_people_whom_the_policy_names_and_who_stands_in_are_mentioned_too() -> None:
    """They decide the gate, and could not be called to it."""
    team, named, gone, other = make_team(), make_user("Nora Named"), make_user("Nora Off"), make_user("Noah Elsewhere")
    one = ann(team)
    lend(one, other)
    gate = make_gate(policy=make_policy(team, groups=(team,), people=(named, gone)))
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert mentions.offered(gate, "no", to=one) == [other, named]
    words = " ".join(f"@{each.username}" for each in (named, gone, other, make_user("Eve Marlow")))
    assert set(mentions.tell(gate, words, by=one)) == {named.pk, other.pk}
