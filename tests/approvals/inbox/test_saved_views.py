"""Saved views: a person's own queue, filters and order, which they may share with a team."""

from __future__ import annotations

from threading import Thread
from typing import Any

from django.db import connection

from approvals.models import SavedView
from tests.factories import ann, bob, eve, make_card, make_gate, make_team
from tests.harness.signed_in_clients import signed_in


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
    assert client.post(there, {"name": "Three"}).status_code == 303
    assert 'value="Three"' in client.get("/inbox/views/").content.decode()
    client.post(there, {"name": "Three", "remove": "yes"})
    assert not SavedView.objects.filter(pk=view.pk).exists()


def test_two_tabs_that_choose_the_opening_view_at_once_leave_one() -> None:
    person = ann(make_team())

    def choose(name: str) -> None:
        save(signed_in(person), name, queue="all", opens="yes")
        connection.close()

    tabs = [Thread(target=choose, args=[f"Tab {n}"]) for n in range(4)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert SavedView.objects.filter(user=person).count() == 4
    assert SavedView.objects.filter(user=person, opens=True).count() == 1


def test_words_of_a_view_are_text() -> None:
    client = signed_in(ann(make_team()))
    save(client, "<script>alert(1)</script>", queue="all")
    assert b"<script>alert" not in client.get("/").content
    assert b"<script>alert" not in client.get("/inbox/views/").content


def test_a_view_that_is_too_long_to_be_kept_whole_is_not_saved() -> None:
    client = signed_in(ann(make_team()))
    answer = save(client, "Long", queue="all", q="я" * 150, sort="oldest")
    assert answer.status_code == 422
    assert "Its search is too long to be saved" in answer.content.decode()
    assert not SavedView.objects.filter(name="Long").exists()


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
