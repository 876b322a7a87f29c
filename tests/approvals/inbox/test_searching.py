"""The search of the inbox: titles, people and payloads, never a secret."""

from __future__ import annotations

import pytest

from approvals.gates.remarks import remark
from approvals.models import Gate
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_team,
    make_user,
)
from tests.factories.runs import make_state
from tests.harness.signed_in_clients import signed_in


def found(reader: object, words: str, queue: str = "all") -> str:
    page: str = signed_in(reader).get("/inbox/list/", {"queue": queue, "q": words}).content.decode()  # type: ignore[arg-type]
    return page


@pytest.fixture
def gate() -> Gate:
    team = make_team()
    state = make_state()
    state["proposal"] = {**state["proposal"], "reply": "The parcel went to Torvalds Alley 17.", "note": "batch 90210"}
    starter = make_user("Zacharias Quill", team)
    return make_gate(policy=make_policy(team, quorum=2), run=make_run(team=team, state=state, started_by=starter))


@pytest.mark.parametrize(("words", "place"), [
    ("refund marit", ""), ("torvalds", "reply"), ("90210", "note"), ("zacharias", "person"), ("quill refund", "person"),
    ("payments", "payments.refund"),
])  # fmt: skip
def test_it_finds_titles_people_and_payload_and_says_where(gate: Gate, words: str, place: str) -> None:
    page = found(ann(gate.team), words)
    assert f'id="gate-{gate.pk}"' in page
    if place:
        assert f"Found in <bdi>{place}</bdi>" in page
    else:
        assert "Found in" not in page
    assert "No matches" in found(ann(gate.team), f"{words} nothingofthekind")


def test_who_decides_or_comments_is_found_from_then_on(gate: Gate) -> None:
    reader = ann(gate.team)
    voter, speaker = (
        make_user("Ygritte Stone", gate.team, may=("approvals.decide_gate",)),
        make_user("Xander Low", gate.team),
    )
    for words in ("ygritte", "xander"):
        assert "No matches" in found(reader, words)
    decide(gate, voter)
    remark(gate, by=speaker, text="Look at the address.", key="k")
    remark(gate, by=speaker, text="Twice.", key="l")
    for words in ("ygritte", "xander", "xander stone ygritte"):
        assert f'id="gate-{gate.pk}"' in found(reader, words)
    assert Gate.objects.get(pk=gate.pk).terms.split().count(f"person{speaker.pk}") == 1
    assert "No matches" in found(reader, f"ygritte{voter.pk}")


def test_an_edit_leaves_the_gate_to_be_found_by_what_the_agent_asked(gate: Gate) -> None:
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    assert f'id="gate-{gate.pk}"' in found(ann(gate.team), "torvalds")


def test_a_long_payload_is_searched_in_part_and_costs_no_more() -> None:
    team = make_team()
    action = make_action(pointer="", arguments={"rows": [f"word{n:05}" for n in range(5_000)]}, pinned=())
    gate = make_gate(team=team, card=make_card(actions=[action]))
    terms = Gate.objects.get(pk=gate.pk).terms
    assert "word00010" in terms
    assert len(terms) < 4_000


def test_others_gates_are_not_found_by_their_words(gate: Gate) -> None:
    for words in ("torvalds", "zacharias", "marit"):
        assert "No matches" in found(ann(make_team()), words)
