"""Pages and the API over a gap say what is gone; a checkpoint that somebody names is never pruned."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.errors import RewindRefused
from agents.moves import rewind
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Event, EventText, Hold, Run
from checkpoints.runs import holds
from tests.agents.pages.stored_histories import sent_back
from tests.agents.pages.test_run_page import page_of, text_of
from tests.factories import READER, ann, bob, eve, make_team, make_user
from tests.harness.signed_in_clients import signed_in

from .pruned_runs import ended, keep, pruned, seqs


@pytest.fixture(scope="module")
def gone() -> tuple[Run, User]:
    """A run of which the last ten of 101 checkpoints are left, and somebody of its team."""
    run = of_a_team(ended(100))
    keep(run, keep_last=10)
    pruned()
    return run, bob(run.team)


def of_a_team(run: Run) -> Run:
    """The run, in a team whose members may see it."""
    Run.objects.filter(pk=run.pk).update(team=make_team())
    run.refresh_from_db()
    return run


def test_the_timeline_draws_the_gap_in_words_and_those_that_follow_it_are_shown(gone: tuple[Run, User]) -> None:
    run, reader = gone
    html = page_of(run, reader)
    text = text_of(html)
    assert "91 checkpoints" in text
    assert "1 to 91, removed on" in text
    assert f"under the retention policy {run.plan.agent}" in text
    assert "Earlier checkpoints" not in text, "there are none"
    assert "1 branch" not in text, "what follows a gap was not rewound"
    page = page_of(run, reader, "?at=92")
    assert 'class="tree"' in page
    assert "Difference to 91" not in page
    assert "Whole state" not in page  # there is nothing to choose
    # A reader of several took the new anchor for one that only it builds on: "This checkpoint does not verify".
    for seq in (93, 97, 101):
        text = text_of(page_of(run, reader, f"?at={seq}"))
        assert f"Difference to {seq - 1}" in text
        assert "does not verify" not in text


def test_a_removed_checkpoint_answers_that_it_is_gone_and_why_and_takes_no_name(gone: tuple[Run, User]) -> None:
    run, reader = gone
    client = signed_in(reader)
    assert client.post(names(run, 7), {"name": "too late"}).status_code == 410
    assert standing(run) == []
    for address in (f"/runs/{run.pk}/checkpoints/40/", f"/runs/{run.pk}/?at=40"):
        response = client.get(address)
        assert response.status_code == 410
        assert f"Checkpoint 40 of R-{run.pk} was removed" in text_of(response.content.decode())
    assert client.get(f"/runs/{run.pk}/checkpoints/4000/").status_code == 404
    response = client.get(f"/api/runs/{run.pk}/checkpoints/40")
    problem = json.loads(response.content)
    assert (response.status_code, problem["status"]) == (410, 410)
    assert f"under the retention policy {run.plan.agent} (version 1)" in problem["detail"]
    with pytest.raises(RewindRefused, match=r"Checkpoint 40 of .* was removed on .* under the retention policy"):
        rewind.rewind(run, to=40, by=ann(run.team))
    assert seqs(run)[-1] == 101


def test_a_closed_gate_whose_state_is_gone_says_so() -> None:
    team = make_team()
    reviewer = bob(team)
    run = sent_back(team, by=reviewer).fresh()
    Run.objects.filter(pk=run.pk).update(status="failed")
    gate = Gate.objects.filter(run=run, status="decided").order_by("pk").first()
    assert gate
    keep(run, keep_last=1)
    Hold.objects.filter(run=run).update(freed_at="2026-01-01T00:00Z")
    pruned()
    assert not Checkpoint.objects.filter(pk=gate.checkpoint).exists()
    client: Client = signed_in(reviewer)
    response = client.get(f"/gates/{gate.pk}/")
    assert response.status_code == 410
    assert "was removed on" in response.content.decode()
    assert client.get(f"/api/gates/{gate.pk}").status_code == 200
    assert client.get(f"/runs/{run.pk}/").status_code == 200
    preflight = client.get(f"/api/gates/{gate.pk}/preflight")
    assert preflight.status_code == 410
    assert "was removed on" in json.loads(preflight.content)["detail"]
    assert client.get(f"/api/gates/{gate.pk}/impacts").status_code < 500


def test_an_open_gate_can_be_decided_though_the_states_to_send_it_back_to_are_gone() -> None:
    """A run that had ended, was pruned and then rewound asked anew, and its gate answered that it had been removed."""
    team = make_team()
    reviewer = bob(team)
    gate = sent_back(team, by=ann(team)).ask()
    run, status = gate.run, gate.run.status
    Run.objects.filter(pk=run.pk).update(status="failed")
    keep(run, keep_last=1)
    Hold.objects.filter(run=run).exclude(checkpoint=gate.checkpoint).update(freed_at="2026-01-01T00:00Z")
    pruned()
    Run.objects.filter(pk=run.pk).update(status=status)
    assert run.gaps.exists()
    client: Client = signed_in(reviewer)
    response = client.get(f"/gates/{gate.pk}/")
    assert response.status_code == 200
    assert 'name="back_to" value="propose"' in response.content.decode()
    assert client.get(f"/api/gates/{gate.pk}").status_code == 200


@pytest.fixture
def run() -> Run:
    return of_a_team(ended(60))


@pytest.fixture
def client(run: Run) -> Client:
    return signed_in(ann(run.team))


def names(run: Run, seq: int) -> str:
    return f"/runs/{run.pk}/checkpoints/{seq}/names/"


def standing(run: Run) -> list[str]:
    return list(Hold.objects.standing().filter(run=run, kind="name").values_list("reason", flat=True))


def test_a_named_checkpoint_is_kept_shown_and_told_of_until_its_name_is_taken_away(run: Run, client: Client) -> None:
    answer = client.post(names(run, 7), {"name": "x" * 101})
    assert answer.status_code == 422
    assert "100 are the most" in text_of(answer.content.decode())
    assert "x" * 101 in answer.content.decode()
    assert standing(run) == []
    client.post(names(run, 7))
    assert standing(run) == ["Checkpoint 7"]
    answer = client.post(names(run, 7), {"name": "  before\n the move "})
    assert answer["Location"] == f"/runs/{run.pk}/?at=7#inspect"
    assert standing(run) == ["before the move"]
    assert "before the move" in text_of(client.get(f"/runs/{run.pk}/?at=7&before=20").content.decode())
    event = Event.objects.filter(run_id=run.pk, kind="checkpoint.named").latest("pk")
    assert bytes(EventText.objects.get(event=event).text).decode() == "before the move"
    keep(run, keep_last=5)
    pruned()
    assert 7 in seqs(run)
    for _ in range(2):
        client.post(f"{names(run, 7)}removals/")
        assert standing(run) == []
        assert Event.objects.filter(run_id=run.pk, kind="checkpoint.unnamed").count() == 1
    pruned()
    assert 7 not in seqs(run)


def test_a_reader_sees_names_and_may_give_none(run: Run) -> None:
    holds.name(run, 61, "<b>the last</b>", by=SYSTEM)
    Run.objects.filter(pk=run.pk).update(team=make_team(may=READER))
    run.refresh_from_db()
    reader = make_user("Rita", run.team)
    html = page_of(run, reader)
    assert "&lt;b&gt;the last&lt;/b&gt;" in html
    assert "Add a name" not in html
    assert signed_in(reader).post(names(run, 7)).status_code == 403
    assert signed_in(eve()).post(names(run, 7)).status_code == 404
