"""Sending a run a signal from its page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.models import Signal
from agents.waits import signals
from agents.work_errors import TooManySignals
from checkpoints.models import Run
from tests.agents.children.pages.test_page import text_of
from tests.agents.waits.conftest import own_agents
from tests.factories import ann, make_team, make_user
from tests.factories.driven_runs import advance, make_run, state
from tests.harness.signed_in_clients import signed_in

__all__ = ["own_agents"]


@pytest.fixture
def run() -> Run:
    return advance(make_run("listener"))


def post(client: Client, run: Run, **form: Any) -> Any:
    return client.post(f"/runs/{run.pk}/signals/", form)


def test_the_runs_page_leads_to_the_form_of_the_signal_that_it_waits_for(run: Run) -> None:
    client = signed_in(ann(run.team))
    assert f"/runs/{run.pk}/signal/?name=health" in client.get(f"/runs/{run.pk}/").content.decode()
    page = client.get(f"/runs/{run.pk}/signal/").content.decode()
    assert "waits for the signal “health”" in page
    assert "Percent" in page
    assert "This signal has no value." in client.get(f"/runs/{run.pk}/signal/?name=go").content.decode()
    assert post(client, run, name="go", key="k").status_code == 302
    assert Signal.objects.get(run=run).name == "go", "it may come before its wait"


def test_a_signal_is_kept_with_who_sent_it_and_the_run_goes_on(run: Run) -> None:
    sender = ann(run.team)
    client = signed_in(sender)
    for _ in range(2):  # a double click
        assert post(client, run, name="health", key="k", **{"value/percent": "90"}).status_code == 302
    sent = Signal.objects.get(run=run)
    assert (sent.by, sent.by_name) == (f"user:{sender.pk}", "Ann Okafor")
    run.refresh_from_db()
    assert run.status == "queued"
    assert "not read yet" in client.get(f"/runs/{run.pk}/signal/").content.decode()
    assert state(advance(run))["heard"] == [90]
    page = text_of(client.get(f"/runs/{run.pk}/signal/").content.decode())
    assert "Ann Okafor" in page
    assert "page-k" in page
    assert "read by “Listen”" in page
    assert "not read yet" not in page


def test_a_value_that_does_not_fit_is_refused_beside_its_field_and_kept(run: Run) -> None:
    answer = post(signed_in(ann(run.team)), run, name="health", key="k", **{"value/percent": "900"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "The signal was not sent." in page
    assert 'value="900"' in page
    assert not Signal.objects.filter(run=run).exists()


def test_what_cannot_be_sent_is_said_in_the_readers_language(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one too many the page showed the error's docstring, which is for programs and in English."""
    monkeypatch.setattr(signals, "MOST", 0)
    monkeypatch.setattr(TooManySignals, "sentence", "No más")
    answer = post(signed_in(ann(run.team)), run, name="go", key="k")
    assert (answer.status_code, "No más" in answer.content.decode()) == (409, True)


def test_who_may_only_read_is_led_to_no_form() -> None:
    run = advance(make_run("listener", team=make_team(may=("checkpoints.view_run",))))
    reader = signed_in(make_user("Rita Reader", run.team))
    assert "Only people who may start runs" in reader.get(f"/runs/{run.pk}/signal/").content.decode()
    assert f"/runs/{run.pk}/signal/" not in reader.get(f"/runs/{run.pk}/").content.decode()
