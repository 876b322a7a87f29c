"""One click on a run's page names a checkpoint, and what has a name is never pruned."""

from __future__ import annotations

import pytest
from django.test import Client

from checkpoints.actors import SYSTEM
from checkpoints.models import Event, EventText, Hold, Run
from checkpoints.runs import holds
from tests.agents.views.run_page.test_run_page import page_of, text_of
from tests.factories import READER, ann, eve, make_team, make_user
from tests.harness.signed_in_clients import signed_in

from .pruned_runs import ended, keep, pruned, seqs


@pytest.fixture
def run() -> Run:
    run = ended(60)
    Run.objects.filter(pk=run.pk).update(team=make_team())
    run.refresh_from_db()
    return run


@pytest.fixture
def client(run: Run) -> Client:
    return signed_in(ann(run.team))


def names(run: Run, seq: int) -> str:
    return f"/runs/{run.pk}/checkpoints/{seq}/names/"


def standing(run: Run) -> list[str]:
    return list(Hold.objects.standing().filter(run=run, kind="name").values_list("reason", flat=True))


def test_a_named_checkpoint_is_kept_shown_and_told_of(run: Run, client: Client) -> None:
    answer = client.post(names(run, 7), {"name": "  before\n the move "})
    assert answer["Location"] == f"/runs/{run.pk}/?at=7#inspect"
    assert standing(run) == ["before the move"]
    assert "before the move" in text_of(client.get(f"/runs/{run.pk}/?at=7&before=20").content.decode())
    event = Event.objects.get(run_id=run.pk, kind="checkpoint.named")
    assert bytes(EventText.objects.get(event=event).text).decode() == "before the move"
    keep(run, keep_last=5)
    pruned()
    assert 7 in seqs(run)


def test_without_words_it_is_named_after_its_number(run: Run, client: Client) -> None:
    client.post(names(run, 7))
    assert standing(run) == ["Checkpoint 7"]


def test_another_name_takes_the_place_of_the_first(run: Run, client: Client) -> None:
    client.post(names(run, 7), {"name": "one"})
    client.post(names(run, 7), {"name": "two"})
    assert standing(run) == ["two"]


def test_a_name_that_is_taken_away_keeps_nothing(run: Run, client: Client) -> None:
    client.post(names(run, 7), {"name": "one"})
    client.post(f"{names(run, 7)}removals/")
    assert standing(run) == []
    assert Event.objects.filter(run_id=run.pk, kind="checkpoint.unnamed").count() == 1
    client.post(f"{names(run, 7)}removals/")
    assert Event.objects.filter(run_id=run.pk, kind="checkpoint.unnamed").count() == 1
    keep(run, keep_last=5)
    pruned()
    assert 7 not in seqs(run)


def test_a_name_that_is_too_long_is_refused_with_what_was_typed(run: Run, client: Client) -> None:
    answer = client.post(names(run, 7), {"name": "x" * 101})
    assert answer.status_code == 422
    assert "100 are the most" in text_of(answer.content.decode())
    assert "x" * 101 in answer.content.decode()
    assert standing(run) == []


def test_what_is_gone_takes_no_name(run: Run, client: Client) -> None:
    keep(run, keep_last=5)
    pruned()
    answer = client.post(names(run, 7), {"name": "too late"})
    assert answer.status_code == 410
    assert standing(run) == []


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
