"""The run's page and the list of runs: what they say, what they do not let through, and both in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from playwright.sync_api import Page, expect

from agents.pages import run_list
from checkpoints import actors, store
from checkpoints.errors import Fenced
from checkpoints.models import Checkpoint, Run
from tests.agents.pages.stored_histories import ORDER, PROPOSAL, begin, held, sent_back
from tests.factories import (
    ann,
    bob,
    decide,
    make_card,
    make_plan,
    make_run,
    make_spec,
    make_team,
    unique,
)
from tests.harness.browser_checks import check_each_look, watched
from tests.harness.examples import trying_all
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

NewPage = Callable[..., Page]


def page_of(run: Run, user: User, query: str = "") -> str:
    response = signed_in(user).get(f"/runs/{run.pk}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_a_held_run_says_where_and_its_events_are_told_newest_first_in_words() -> None:
    team = make_team()
    gate, reviewer = held(team), bob(team)
    html = page_of(gate.run, reviewer)
    assert "Held at “Review”" in html
    assert f'href="/gates/{gate.pk}/"' in html
    decide(gate, reviewer, comment="Fine by me.")
    text = text_of(signed_in(reviewer).get(f"/runs/{gate.run_id}/events/").content.decode())
    assert text.index("Bob Lindqvist approved “Review”") < text.index("asks for a decision at “Review”")
    assert "Fine by me." in text
    assert "checkpoint.saved" not in text


def test_the_rejected_branch_stays_readable_with_who_and_why() -> None:
    reviewer = bob(team := make_team())
    walk = sent_back(team, by=reviewer)
    text = text_of(page_of(walk.fresh(), reviewer))
    assert "by Bob Lindqvist, back to “Propose”: Only the frames came back." in text
    assert "to 2" in text
    assert "1 branch" in text
    assert 'data-branch="rejected"' in page_of(walk.fresh(), reviewer)


def test_what_a_step_noted_and_a_title_are_text_and_hidden_characters_are_badged() -> None:
    walk = begin(team := make_team(), title="<script>alert(1)</script>")
    walk.save("find_order", {"order": ORDER}, "propose", notes=["<img src=x> \u202egnp"])
    html = page_of(walk.fresh(), bob(team))
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "U+202E" in html


def test_a_failed_attempt_and_a_failed_run_say_where_and_why() -> None:
    walk = begin(team := make_team())
    walk.fail("find_order", "ConnectError: <refused>")
    walk.save("find_order", {"order": ORDER}, "propose", attempt=2)
    html = page_of(walk.fresh(), bob(team))
    assert html.count("ConnectError: &lt;refused&gt;") == 2
    assert "<refused>" not in html
    assert "Traceback (most recent call last)" in html
    assert "failed 1 time before" in text_of(html)
    walk.fail("propose")
    text = text_of(page_of(walk.release("failed", "TimeoutError: the shop did not answer"), bob(team)))
    for words in ("The run failed at “Propose”.", "TimeoutError: the shop did not answer", "start again as a new run"):
        assert words in text


def test_a_frozen_run_names_the_last_checkpoint_that_verifies() -> None:
    walk = begin(team := make_team())
    walk.save("find_order", {"order": ORDER}, "propose")
    walk.save("propose", {"mailed": True}, "review")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE checkpoints_checkpoint SET digest = %s WHERE id = %s", [b"\0" * 32, walk.at.id])
    fault = f"checkpoint {walk.at.id}: its columns do not match its digest"
    run = walk.release("failed", fault, freeze=True)
    html = page_of(run, bob(team))
    assert "this run is frozen" in html
    assert "The last checkpoint that verifies is 2, after “Find order”" in text_of(html)
    assert "This checkpoint does not verify" in html


def test_verifying_says_that_the_chain_holds_or_what_is_wrong() -> None:
    run = held(team := make_team()).run
    client = signed_in(bob(team))
    assert "chain verified" in client.get(f"/runs/{run.pk}/verification/").content.decode()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE checkpoints_checkpoint SET took_us = 1 WHERE run_id = %s AND seq = 2", [run.pk])
    fragment = client.get(f"/runs/{run.pk}/verification/", headers={"HX-Request": "true"}).content.decode()
    assert "does not verify" in fragment
    assert "<html" not in fragment


def test_effects_are_told_with_what_can_and_what_cannot_be_undone() -> None:
    walk = begin(team := make_team())
    walk.effect("pay")
    walk.save("pay", {"payment": {"id": "p1"}}, "reply")
    walk.effect("reply", "unknown", irreversible=True, error="ReadTimeout")
    text = text_of(page_of(walk.release("queued"), bob(team)))
    assert "2 effects 1 done, 1 unknown" in text
    assert "done, can be undone" in text
    assert "unknown: it may have happened ReadTimeout" in text


def test_the_live_part_is_a_fragment_that_leaves_a_chosen_checkpoint_alone() -> None:
    run = held(team := make_team()).run
    client = signed_in(bob(team))
    follows = client.get(f"/runs/{run.pk}/timeline/").content.decode()
    stays = client.get(f"/runs/{run.pk}/timeline/?at=2&still=1").content.decode()
    assert "<html" not in follows
    assert 'id="inspect"' in follows
    assert 'id="inspect"' not in stays
    assert f'hx-get="/runs/{run.pk}/timeline/?at=2&amp;still=1"' in stays
    assert re.search(r'<li class="cp"[^>]*aria-current="true"[^>]*>.*?\?at=2#', stays, re.S)


def test_a_fork_and_its_origin_name_each_other_unless_it_is_of_another_team() -> None:
    team = make_team()
    reader, origin = bob(team), held(team).run
    at = Checkpoint.objects.get(run=origin, seq=2).pk
    fork = store.fork(at, by=actors.of_user(reader), started_by=reader)
    foreign = store.fork(at, by=actors.SYSTEM, team=make_team())
    assert f"of R-{origin.pk}, checkpoint 2" in text_of(page_of(fork, reader))
    page = page_of(origin, reader)
    assert f'href="/runs/{fork.pk}/"' in page
    assert f"R-{foreign.pk}" not in page


def cancelled(client: Client, run: Run, **form: str) -> Any:
    return client.post(f"/runs/{run.pk}/cancellations/", form)


def test_cancelling_ends_the_run_and_withdraws_its_gate_without_rejecting() -> None:
    gate = held(team := make_team())
    response = cancelled(signed_in(bob(team)), gate.run, reason="Sent twice.")
    assert (response.status_code, response["Location"]) == (302, f"/runs/{gate.run_id}/")
    gate.refresh_from_db()
    run = Run.objects.get(pk=gate.run_id)
    assert (run.status, run.reason, gate.status) == ("cancelled", "Sent twice.", "withdrawn")
    assert "Cancelled by Bob Lindqvist . Sent twice." in text_of(page_of(run, bob(team)))
    response = cancelled(signed_in(bob(team)), run)
    assert response.status_code == 409
    assert "The run had already ended, so nothing was cancelled." in response.content.decode()


def test_cancelling_fences_the_worker_that_has_the_run_and_says_first_what_stays_done_outside() -> None:
    walk = begin(team := make_team())
    walk.effect("reply", irreversible=True)
    walk.save("reply", {"mailed": True}, "pay")
    text = text_of(page_of(walk.fresh(), bob(team)))
    assert "What was already done is not undone: “Reply” is done and cannot be undone" in text
    assert "leaving 1 effect" in text
    assert cancelled(signed_in(bob(team)), walk.run).status_code == 302
    with pytest.raises(Fenced):
        walk.save("find_order", {"order": ORDER}, "propose")


def test_the_runs_of_my_teams_come_newest_first_with_what_they_wait_for() -> None:
    gate = held(team := make_team(), title="Refund for Marit")
    newer = begin(team, title="Refund for Nils").run
    begin(make_team(), title="Not of my team")
    html = signed_in(bob(team)).get("/runs/").content.decode()
    text = text_of(html)
    assert html.index(f'id="run-{newer.pk}"') < html.index(f'id="run-{gate.run_id}"')
    assert "Held at “Review” Refund for Marit" in text
    assert "Running “Find order”" in text
    assert "3 checkpoints" in text
    assert "Not of my team" not in text


def test_a_status_filters_an_unknown_one_does_not_and_what_waits_for_me_is_a_list_of_its_own() -> None:
    person = ann(team := make_team())
    mine, own, running = held(team).run_id, held(team, started_by=person).run_id, begin(team).run.pk
    assert shown(person, "status=waiting") == {mine, own}
    assert shown(person, "status=mine") == {mine}
    assert shown(person, "status=evil") == {mine, own, running}
    client = signed_in(person)
    assert "No runs match these filters." in text_of(client.get("/runs/?status=failed").content.decode())
    assert "<html" not in client.get("/runs/", headers={"HX-Request": "true"}).content.decode()
    assert client.post("/runs/").status_code == 405


def test_pages_go_on_below_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "PAGE", 2)
    team = make_team()
    oldest, middle, newest = (begin(team).run.pk for _ in range(3))
    client = signed_in(bob(team))
    first = client.get("/runs/").content.decode()
    assert f'href="/runs/?before={middle}"' in first
    assert f'id="run-{oldest}"' not in first
    second = client.get(f"/runs/?before={middle}").content.decode()
    assert f'id="run-{oldest}"' in second
    assert f'id="run-{newest}"' not in second
    assert "before=" not in second.split('id="run-list"')[1]


def test_only_the_agents_of_my_teams_are_offered_and_of_those_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = make_plan(make_spec(unique("mine"))), make_plan(make_spec(unique("other")))
    team = make_team()
    make_run(team=team, plan=mine)
    make_run(team=make_team(), plan=other)
    page = signed_in(bob(team)).get("/runs/").content.decode()
    assert mine.agent in page
    assert other.agent not in page
    newer = make_plan(make_spec(unique("newer")))
    make_run(team=team, plan=newer)
    monkeypatch.setattr(run_list, "PLANS", 1)
    assert list(run_list.versions_by_agent([team.pk])) == [newer.agent]


def shown(user: User, query: str) -> set[int]:
    """The runs that a list with this query shows."""
    html = signed_in(user).get(f"/runs/?{query}").content.decode()
    return {int(found) for found in re.findall(r'data-run="(\d+)"', html)}


def test_each_filter_picks_by_itself_and_with_the_others() -> None:
    team, other = make_team("Support"), make_team("Finance")
    person, starter = bob(team, other), ann(team)
    plain = begin(team, title="Refund for Marit").run
    theirs = begin(other, title="Invoice of Nils", started_by=starter).run
    fork = store.fork(Checkpoint.objects.get(run=plain, seq=1).pk, by=actors.SYSTEM, title="Refund, once more")
    everything = {plain.pk, theirs.pk, fork.pk}
    assert shown(person, "") == everything
    assert shown(person, f"team={other.pk}") == {theirs.pk}
    assert shown(person, f"by={starter.username}") == {theirs.pk}
    assert shown(person, "by=nobody-of-that-name") == set()
    assert shown(person, "q=REF mar") == {plain.pk}
    assert shown(person, "q=refund") == {plain.pk, fork.pk}
    assert shown(person, f"forks_of=R-{plain.pk}") == {fork.pk}
    assert shown(person, f"agent={plain.plan.agent}&version=1") == {plain.pk, fork.pk}
    assert shown(person, f"agent={plain.plan.agent}&version=2") == set()
    assert shown(person, "since=2020-01-01&until=2020-01-02") == set()
    assert shown(person, "since=2020-01-01&until=junk") == everything
    assert shown(person, f"q=refund&status=queued&agent={plain.plan.agent}") == {fork.pk}
    assert shown(person, f"upto={plain.pk}") == {plain.pk}


def test_nobody_finds_a_run_of_another_team_whatever_is_asked() -> None:
    theirs = begin(make_team(), title="Not of my team").run
    for query in ("", f"team={theirs.team_id}", "q=team", f"agent={theirs.plan.agent}", f"forks_of={theirs.pk}"):
        assert shown(bob(make_team()), query) == set()


def test_a_page_of_the_list_is_read_in_twelve_statements() -> None:
    team = make_team()
    for _ in range(3):
        held(team)
    client = signed_in(bob(team))
    for query in ("", "?q=refund&status=waiting", "?status=mine"):
        with sent() as statements:
            assert client.get(f"/runs/{query}").status_code == 200
        assert len(statements) <= 12, statements


def open_run(new_page: NewPage, user: Any, run: Run, query: str = "", **options: Any) -> Page:
    page = new_page(user, **options)
    page.goto(f"/runs/{run.pk}/{query}")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    return page


def test_each_checkpoint_appears_as_it_is_saved_and_the_inspector_follows(new_page: NewPage) -> None:
    page = new_page(bob(team := make_team()))
    page.goto("/runs/")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    walk = begin(team)
    expect(page.locator(f"#run-{walk.run.pk}")).to_contain_text("Running")
    page.goto(f"/runs/{walk.run.pk}/")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    page.evaluate("window.stays = true")
    walk.save("find_order", {"order": ORDER}, "propose")
    expect(page.locator("#timeline")).to_contain_text("2 checkpoints")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 2, after “Find order”")
    walk.save("propose", {"proposal": PROPOSAL}, "review")
    walk.ask(card=make_card())
    expect(page.locator("#run-head")).to_contain_text("Held at “Review”")
    expect(page.locator(".cp[data-status=held]")).to_contain_text("Review")
    page.keyboard.press("k")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 2, after “Find order”")
    page.keyboard.press("j")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 3, after “Propose”")
    page.get_by_role("link", name="Whole state").click()
    expect(page.locator("#inspect .tree")).to_contain_text("proposal")
    page.get_by_role("link", name="Verify the chain").click()
    expect(page.locator("#verify")).to_contain_text("chain verified")
    assert page.evaluate("window.stays") is True
    page.reload()
    expect(page.locator("#inspect .tree")).to_contain_text("proposal")


@pytest.mark.examples
def test_the_pages_are_accessible_and_never_wider_than_the_screen(new_page: NewPage) -> None:
    reviewer = bob(team := make_team())
    walk = sent_back(team, by=reviewer)
    walk.fail("review")
    page = new_page(reviewer)
    run = walk.ask().run
    for status in ("completed", "failed", "cancelled"):
        ended = make_run(team=team, plan=run.plan)
        Run.objects.filter(pk=ended.pk).update(status=status, finished_at=Now())
    said = watched(page)
    parts = ["", "?view=state&at=6", "checkpoints/5/", "events/?family=saves&before=3"] if trying_all() else []
    for address in (*(f"/runs/{run.pk}/{part}" for part in parts), "/runs/", f"/agents/{run.plan.agent}/"):
        assert check_each_look(page, address, said) == []
    expect(page.locator(".meter rect[data-status]")).to_have_count(3)
