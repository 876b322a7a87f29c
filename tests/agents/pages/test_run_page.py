"""The run's page: who may see it, what it says, and what it does not let through."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client

from checkpoints import actors, store
from checkpoints.models import Checkpoint, Run
from tests.agents.pages.stored_histories import ORDER, begin, held, sent_back
from tests.factories import READER, REVIEWER, bob, decide, eve, make_team, make_user, mira
from tests.harness.signed_in_clients import signed_in


def page_of(run: Run, user: User, query: str = "") -> str:
    response = signed_in(user).get(f"/runs/{run.pk}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def text_of(html: str) -> str:
    """What a reader reads, without the markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def addresses(run: Run) -> list[str]:
    root = f"/runs/{run.pk}/"
    return [
        root,
        f"{root}timeline/",
        f"{root}events/",
        f"{root}verification/",
        f"{root}checkpoints/2/",
        f"{root}checkpoints/2/value?at=/order",
    ]


def test_members_see_every_part_of_a_run_and_no_cache_keeps_it() -> None:
    team = make_team()
    run = held(team).run
    client = signed_in(bob(team))
    for address in addresses(run):
        response = client.get(address)
        assert (address, response.status_code) == (address, 200)
        assert "no-store" in response["Cache-Control"]


def test_an_outsider_is_told_that_there_is_no_such_run() -> None:
    run = held().run
    client = signed_in(eve())
    assert [client.get(address).status_code for address in addresses(run)] == [404] * 6
    assert client.post(f"/runs/{run.pk}/cancellations/").status_code == 404


def test_a_reviewer_from_another_team_is_told_that_there_is_no_such_run() -> None:
    finance = make_team("Finance", may=REVIEWER)
    run = held().run
    assert signed_in(mira(finance)).get(f"/runs/{run.pk}/").status_code == 404


def test_somebody_in_the_team_who_may_not_view_runs_sees_none() -> None:
    team = make_team(may=())
    run = held(team).run
    assert signed_in(bob(team)).get(f"/runs/{run.pk}/").status_code == 404


def test_strangers_are_sent_to_sign_in() -> None:
    run = held().run
    for address in [*addresses(run), "/runs/"]:
        response = Client().get(address)
        assert (response.status_code, response["Location"].split("?")[0]) == (302, "/accounts/login/")


@pytest.mark.parametrize(
    "place", ["", "timeline/", "events/", "verification/", "checkpoints/1/", "checkpoints/1/value"]
)
def test_pages_that_only_show_refuse_a_post(place: str) -> None:
    team = make_team()
    run = held(team).run
    assert signed_in(bob(team)).post(f"/runs/{run.pk}/{place}").status_code == 405


def test_a_held_run_says_where_and_links_to_its_gate() -> None:
    team = make_team()
    gate = held(team)
    html = page_of(gate.run, bob(team))
    assert "Held at “Review”" in html
    assert f'href="/gates/{gate.pk}/"' in html


def test_the_rejected_branch_stays_readable_with_who_and_why() -> None:
    team = make_team()
    reviewer = bob(team)
    walk = sent_back(team, by=reviewer)
    text = text_of(page_of(walk.fresh(), reviewer))
    assert "by Bob Lindqvist, back to “Propose”: Only the frames came back." in text
    assert "to 2" in text
    assert "1 branch" in text
    assert 'data-branch="rejected"' in page_of(walk.fresh(), reviewer)


def test_what_a_step_noted_and_a_title_are_text_and_hidden_characters_are_badged() -> None:
    team = make_team()
    walk = begin(team, title="<script>alert(1)</script>")
    walk.save("find_order", {"order": ORDER}, "propose", notes=["<img src=x> \u202egnp"])
    html = page_of(walk.fresh(), bob(team))
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "U+202E" in html


def test_an_attempt_that_failed_shows_its_error_and_its_traceback_in_the_row_of_its_step() -> None:
    team = make_team()
    walk = begin(team)
    walk.fail("find_order", "ConnectError: <refused>")
    walk.save("find_order", {"order": ORDER}, "propose", attempt=2)
    html = page_of(walk.fresh(), bob(team))
    assert html.count("ConnectError: &lt;refused&gt;") == 2
    assert "<refused>" not in html
    assert "Traceback (most recent call last)" in html
    assert "failed 1 time before" in text_of(html)


def test_a_failed_run_says_where_and_why_and_what_can_be_done() -> None:
    team = make_team()
    walk = begin(team)
    walk.fail("find_order")
    text = text_of(page_of(walk.release("failed", "TimeoutError: the shop did not answer"), bob(team)))
    assert "The run failed at “Find order”." in text
    assert "TimeoutError: the shop did not answer" in text
    assert "start again as a new run" in text


def test_a_frozen_run_names_the_last_checkpoint_that_verifies() -> None:
    team = make_team()
    walk = begin(team)
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
    team = make_team()
    run = held(team).run
    client = signed_in(bob(team))
    assert "chain verified" in client.get(f"/runs/{run.pk}/verification/").content.decode()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE checkpoints_checkpoint SET took_us = 1 WHERE run_id = %s AND seq = 2", [run.pk])
    fragment = client.get(f"/runs/{run.pk}/verification/", headers={"HX-Request": "true"}).content.decode()
    assert "does not verify" in fragment
    assert "<html" not in fragment


def test_effects_are_told_with_what_can_and_what_cannot_be_undone() -> None:
    team = make_team()
    walk = begin(team)
    walk.effect("pay")
    walk.save("pay", {"payment": {"id": "p1"}}, "reply")
    walk.effect("reply", "unknown", irreversible=True, error="ReadTimeout")
    text = text_of(page_of(walk.release("queued"), bob(team)))
    assert "2 effects 1 done, 1 unknown" in text
    assert "done, can be undone" in text
    assert "unknown: it may have happened ReadTimeout" in text


def test_events_are_told_newest_first_in_words_without_the_checkpoints() -> None:
    team = make_team()
    reviewer = bob(team)
    gate = held(team)
    decide(gate, reviewer, comment="Fine by me.")
    text = text_of(signed_in(reviewer).get(f"/runs/{gate.run_id}/events/").content.decode())
    assert text.index("Bob Lindqvist approved “Review”") < text.index("asks for a decision at “Review”")
    assert "Fine by me." in text
    assert "checkpoint.saved" not in text


def test_the_live_part_is_a_fragment_that_leaves_a_chosen_checkpoint_alone() -> None:
    team = make_team()
    run = held(team).run
    client = signed_in(bob(team))
    follows = client.get(f"/runs/{run.pk}/timeline/").content.decode()
    stays = client.get(f"/runs/{run.pk}/timeline/?at=2&still=1").content.decode()
    assert "<html" not in follows
    assert 'id="inspect"' in follows
    assert 'id="inspect"' not in stays
    assert f'hx-get="/runs/{run.pk}/timeline/?at=2&amp;still=1"' in stays
    assert re.search(r'<li class="cp"[^>]*aria-current="true"[^>]*>.*?\?at=2#', stays, re.S)


def test_a_fork_and_its_origin_name_each_other() -> None:
    team = make_team()
    reader = bob(team)
    origin = held(team).run
    found = Checkpoint.objects.get(run=origin, seq=2)
    fork = store.fork(found.pk, by=actors.of_user(reader), started_by=reader)
    assert f"of R-{origin.pk}, checkpoint 2" in text_of(page_of(fork, reader))
    assert f'href="/runs/{fork.pk}/"' in page_of(origin, reader)


def test_a_fork_into_a_team_that_the_reader_is_not_in_is_not_told() -> None:
    team = make_team()
    origin = held(team).run
    found = Checkpoint.objects.get(run=origin, seq=2)
    fork = store.fork(found.pk, by=actors.SYSTEM, team=make_team())
    assert f"R-{fork.pk}" not in page_of(origin, bob(team))


class TestCancelling:
    """POST /runs/<id>/cancellations/."""

    def test_ends_the_run_and_withdraws_its_gate_without_rejecting(self) -> None:
        team = make_team()
        gate = held(team)
        response = signed_in(bob(team)).post(f"/runs/{gate.run_id}/cancellations/", {"reason": "Sent twice."})
        assert (response.status_code, response["Location"]) == (302, f"/runs/{gate.run_id}/")
        gate.refresh_from_db()
        run = Run.objects.get(pk=gate.run_id)
        assert (run.status, run.reason, gate.status) == ("cancelled", "Sent twice.", "withdrawn")
        text = text_of(page_of(run, bob(team)))
        assert "Cancelled by Bob Lindqvist . Sent twice." in text

    def test_fences_the_worker_that_has_the_run(self) -> None:
        from checkpoints.errors import Fenced

        team = make_team()
        walk = begin(team)
        assert signed_in(bob(team)).post(f"/runs/{walk.run.pk}/cancellations/").status_code == 302
        with pytest.raises(Fenced):
            walk.save("find_order", {"order": ORDER}, "propose")

    def test_is_refused_to_those_who_may_only_look(self) -> None:
        team: Group = make_team(may=READER)
        gate = held(team)
        client = signed_in(make_user("Rita Reader", team))
        assert client.post(f"/runs/{gate.run_id}/cancellations/").status_code == 403
        assert "Cancel the run" not in client.get(f"/runs/{gate.run_id}/").content.decode()
        assert Run.objects.get(pk=gate.run_id).status == "waiting"

    def test_comes_too_late_for_a_run_that_has_ended(self) -> None:
        team = make_team()
        run = begin(team).release("queued")
        run.cancel(by=actors.SYSTEM)
        response = signed_in(bob(team)).post(f"/runs/{run.pk}/cancellations/")
        assert response.status_code == 409
        assert "The run had already ended, so nothing was cancelled." in response.content.decode()

    def test_is_never_done_by_a_get(self) -> None:
        team = make_team()
        run = held(team).run
        assert signed_in(bob(team)).get(f"/runs/{run.pk}/cancellations/").status_code == 405

    def test_says_first_what_stays_done_outside(self) -> None:
        team = make_team()
        walk = begin(team)
        walk.effect("reply", irreversible=True)
        walk.save("reply", {"mailed": True}, "pay")
        text = text_of(page_of(walk.release("queued"), bob(team)))
        assert "What was already done is not undone: “Reply” is done and cannot be undone" in text
        assert "leaving 1 effect" in text
