"""Searching the inbox, the runs and the jump by what rows show and payloads hold, never a secret; and saved views."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.gates.remarks import remark
from approvals.models import Gate, SavedView
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    eve,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_team,
    make_user,
)
from tests.factories.runs import make_state
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in


def listed(reader: object, words: str, queue: str = "all") -> str:
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
    ("refund marit", ""), ("90210", "note"), ("quill refund", "person"), ("payments", "payments.refund"),
])  # fmt: skip
def test_it_finds_titles_people_and_payload_and_says_where(gate: Gate, words: str, place: str) -> None:
    page = listed(ann(gate.team), words)
    assert f'id="gate-{gate.pk}"' in page
    if place:
        assert f"Found in <bdi>{place}</bdi>" in page
    else:
        assert "Found in" not in page
    assert "No matches" in listed(ann(gate.team), f"{words} nothingofthekind")


def test_who_decides_or_comments_is_found_from_then_on(gate: Gate) -> None:
    reader = ann(gate.team)
    voter, speaker = (
        make_user("Ygritte Stone", gate.team, may=("approvals.decide_gate",)),
        make_user("Xander Low", gate.team),
    )
    for words in ("ygritte", "xander"):
        assert "No matches" in listed(reader, words)
    decide(gate, voter, "edit", arguments=edit_amount(gate, "80.00"))
    remark(gate, by=speaker, text="Look at the address.", key="k")
    remark(gate, by=speaker, text="Twice.", key="l")
    for words in ("ygritte", "xander", "xander stone torvalds"):
        assert f'id="gate-{gate.pk}"' in listed(reader, words)
    assert Gate.objects.get(pk=gate.pk).terms.split().count(f"person{speaker.pk}") == 1
    assert "No matches" in listed(reader, f"ygritte{voter.pk}")
    assert "No matches" in listed(ann(make_team()), "torvalds"), "others' gates are not"


def test_a_long_payload_is_searched_in_part_and_costs_no_more() -> None:
    team = make_team()
    action = make_action(pointer="", arguments={"rows": [f"word{n:05}" for n in range(5_000)]}, pinned=())
    gate = make_gate(team=team, card=make_card(actions=[action]))
    terms = Gate.objects.get(pk=gate.pk).terms
    assert "word00010" in terms
    assert len(terms) < 4_000


SHOWN = {"title": "Refund £28.00", "for_whom": "Marit Ellery", "resource": "order BK-2041", "amount": "£28.00"}


def found(reader: User, address: str, words: str) -> str:
    return signed_in(reader).get(address, {"q": words, "queue": "all"}).content.decode()


def test_a_gate_and_its_run_are_found_by_what_the_row_shows() -> None:
    """The order's number stood in the row, and looking for it found nothing."""
    gate = make_gate(team=(team := make_team()), card=make_card(**SHOWN))
    other = make_gate(team=team, card=make_card(title="Something else", for_whom="Bo", resource="", amount="€9.10"))
    for words in ("#2041", "marit bk-2041", "28.00"):
        inbox, runs, jump = (found(ann(team), address, words) for address in ("/", "/runs/", "/jump/"))
        assert f'id="gate-{gate.pk}"' in inbox
        assert f'id="gate-{other.pk}"' not in inbox
        assert f'id="run-{gate.run_id}"' in runs
        assert f'id="run-{other.run_id}"' not in runs
        assert f"/gates/{gate.pk}/" in jump


def test_the_number_of_a_run_or_gate_finds_them_and_no_other_whose_words_begin_so() -> None:
    """R-7 was read as the words R and 7… too, and found R-18 first."""
    gate = make_gate(team=(team := make_team()))
    for asked in (f"r-{gate.run_id}", f"run {gate.run_id}", f"gate {gate.pk}", f"{gate.run_id}"):
        inbox, runs, jump = (found(ann(team), address, asked) for address in ("/", "/runs/", "/jump/"))
        assert f'id="gate-{gate.pk}"' in inbox
        assert f'id="run-{gate.run_id}"' in runs
        assert re.search(rf"/(gates/{gate.pk}|runs/{gate.run_id})/", jump)
    other = make_gate(team=team, card=make_card(title=f"Run for R {gate.run_id}0 after gate {gate.pk}0"))
    for asked in (f"r-{gate.run_id}", f"run {gate.run_id}", f"gate {gate.pk}"):
        inbox, runs, jump = (found(ann(team), address, asked) for address in ("/", "/runs/", "/jump/"))
        assert f'id="gate-{gate.pk}"' in inbox
        assert f'id="gate-{other.pk}"' not in inbox
        assert f'id="run-{other.run_id}"' not in runs
        assert f"/gates/{other.pk}/" not in jump


def test_a_decided_gate_is_found_too_and_a_stranger_finds_nothing() -> None:
    gate = make_gate(team=(team := make_team()), card=make_card(**SHOWN))
    decide(gate, ann(team))
    page = signed_in(ann(team)).get("/", {"q": "BK-2041", "queue": "decided"}).content.decode()
    assert f'id="gate-{gate.pk}"' in page
    for address in ("/", "/runs/", "/jump/"):
        for words in ("BK-2041", f"R-{gate.run_id}", f"gate {gate.pk}"):
            assert f"/gates/{gate.pk}/" not in found(eve(), address, words)
            assert f"/runs/{gate.run_id}/" not in found(eve(), address, words)


def save(client: Any, name: str, **said: str) -> Any:
    return client.post("/inbox/views/savings/", {"name": name, **said})


def test_a_view_keeps_queue_filters_and_order_and_is_opened_by_its_address() -> None:
    team = make_team()
    make_gate(team=team, card=make_card(title="Wire to Brightwater", risk="high"))
    make_gate(team=team, card=make_card(title="Refund Marit", risk="low"))
    client = signed_in(ann(team))
    answer = save(client, "  Risky   ones ", queue="all", risk="high", sort="oldest", q="")
    view = SavedView.objects.latest("pk")
    assert (view.name, view.query) == ("Risky ones", "queue=all&risk=high&sort=oldest")
    page = client.get(answer["Location"]).content.decode()
    assert "<h1>Risky ones</h1>" in page
    assert "Wire to Brightwater" in page
    assert "Refund Marit" not in page
    assert f'href="/?view={view.pk}" aria-current="page"' in page
    assert client.get(f"/?view={view.pk}&risk=low").content.decode().count("Refund Marit") > 0


def test_a_view_shared_with_a_team_is_read_by_its_people_and_changed_by_its_owner_alone() -> None:
    team, other = make_team(), make_team("Finance")
    owner, mate, outsider = ann(team), bob(team), ann(other)
    save(signed_in(owner), "Shared", queue="all", team=str(team.pk))
    view = SavedView.objects.latest("pk")
    assert "Shared</span>" in signed_in(mate).get("/").content.decode()
    assert "Shared by Ann Okafor" in signed_in(mate).get("/").content.decode()
    for stranger in (outsider, eve()):
        page = signed_in(stranger).get(f"/?view={view.pk}").content.decode()
        assert "<h1>Mine</h1>" in page
        assert "Shared" not in page
    assert signed_in(mate).post(f"/inbox/views/{view.pk}/changes/", {"name": "Mine now"}).status_code == 404
    save(signed_in(owner), "Elsewhere", queue="all", team=str(other.pk))  # a team that is not theirs
    assert SavedView.objects.latest("pk").team is None
    mate.groups.clear()
    assert "Shared</span>" not in signed_in(mate).get("/").content.decode()


def test_the_inbox_opens_with_the_view_that_was_chosen_and_mine_stays_one_click_away() -> None:
    team = make_team()
    client = signed_in(ann(team))
    save(client, "First", queue="all", opens="yes")
    save(client, "Second", queue="groups", opens="yes")
    assert list(
        SavedView.objects.filter(opens=True, name__in=["First", "Second"]).values_list("name", flat=True)[:2]
    ) == ["Second"]
    assert "<h1>Second</h1>" in client.get("/").content.decode()
    assert "<h1>Mine</h1>" in client.get("/?queue=mine").content.decode()


def test_it_is_renamed_and_removed_and_no_name_is_given_twice() -> None:
    client = signed_in(ann(make_team()))
    save(client, "One", queue="all")
    save(client, "Two", queue="all")
    view = SavedView.objects.latest("pk")
    there = f"/inbox/views/{view.pk}/changes/"
    taken = client.post(there, {"name": "One"})
    assert taken.status_code == 422
    assert "You have another view of this name." in taken.content.decode()
    assert client.post(there, {"name": "x" * 61}).status_code == 422
    assert client.post(there, {"name": "<script>"}).status_code == 303
    assert 'value="&lt;script&gt;"' in client.get("/inbox/views/").content.decode()
    assert "<script>" not in client.get("/").content.decode()
    client.post(there, {"name": "Three", "remove": "yes"})
    assert not SavedView.objects.filter(pk=view.pk).exists()
    answer = save(client, "Long", queue="all", q="я" * 150, sort="oldest")
    assert (answer.status_code, SavedView.objects.filter(name="Long").exists()) == (422, False)
    assert "Its search is too long to be saved" in answer.content.decode()


def test_two_tabs_that_choose_the_opening_view_at_once_leave_one() -> None:
    person = ann(make_team())
    race([partial(save, signed_in(person), f"Tab {n}", queue="all", opens="yes") for n in range(4)])
    assert SavedView.objects.filter(user=person).count() == 4
    assert SavedView.objects.filter(user=person, opens=True).count() == 1


def test_a_nul_in_a_view_takes_nobodys_inbox_down() -> None:
    """The inbox of its owner answered 500, and so did those of the team that it was shared with."""
    team = make_team()
    owner, mate = ann(team), bob(team)
    for name in ("agent", "q"):
        save(signed_in(owner), name, queue="all", team=str(team.pk), **{name: "a\0b"})
        view = SavedView.objects.latest("pk")
        for reader in (owner, mate):
            assert signed_in(reader).get("/").status_code == 200
            assert signed_in(reader).get(f"/?view={view.pk}").status_code == 200
