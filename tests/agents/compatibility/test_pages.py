"""The preflight on the gate's page, on the run's and by the API, and a decision that is posted all the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from playwright.sync_api import Page
from pydantic import BaseModel

from agents import Agent, Card, gate
from approvals.gates import preflight_facts
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.values import artifacts
from tests import factories
from tests.agents.compatibility import porter
from tests.agents.compatibility.conftest import Deploy
from tests.factories import ann, bob, make_gate, make_state, make_team
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate
from tests.harness.browser_checks import check_each_look, watched
from tests.harness.signed_in_clients import form_of, post, signed_in


def waiting(deploy: Deploy) -> Gate:
    """The gate at which a run stands; ann of its team may decide it and cancel the run."""
    deploy(porter.One)
    return open_gate(advance_to_rest(make_run("porter", order="A-1")))


def text(page: Any) -> str:
    """What a page says, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.content.decode())).split())


def pages(client: Client, gate: Gate) -> tuple[str, str]:
    return text(client.get(f"/gates/{gate.pk}/")), text(client.get(f"/runs/{gate.run_id}/"))


def test_where_all_is_well_both_pages_say_so_in_one_folded_line(deploy: Deploy) -> None:
    gate = waiting(deploy)
    client = signed_in(ann(gate.team))
    for address in (f"/gates/{gate.pk}/", f"/runs/{gate.run_id}/"):
        page = client.get(address).content.decode()
        assert '<details class="preflight" data-colour="green">' in page
        assert "Ready: 6 checks passed" in page
        assert "Version 1 of porter is deployed" in page


def test_a_red_gate_has_no_choices_and_says_why_and_how_to_end_the_run(deploy: Deploy) -> None:
    gate = waiting(deploy)
    deploy(porter.TwoBare)
    client = signed_in(ann(gate.team))
    page = client.get(f"/gates/{gate.pk}/").content.decode()
    assert '<details class="preflight" data-colour="red" open>' in page
    assert 'id="decision"' not in page
    assert 'name="verdict"' not in page
    assert f'href="/runs/{gate.run_id}/#cancel"' in page
    for said in pages(client, gate):
        assert "Not ready" in said
        assert "Write an upcaster from 1 to 2, or deploy version 1 again." in said


def test_a_decision_posted_over_a_red_gate_is_refused_and_nothing_typed_is_lost_but_its_run_can_be_cancelled(
    deploy: Deploy,
) -> None:
    gate = waiting(deploy)
    deploy(porter.TwoBare)
    answer = post(ann(gate.team), gate, form_of(gate, comment="Fine by me."))
    assert answer.status_code == 409
    said = text(answer)
    assert "Your decision was not sent. Version 1 is not deployed; version 2 is, and has no step propose." in said
    assert "You can cancel the run instead; that needs no agent code." in said
    assert "Fine by me." in said
    gate.refresh_from_db()
    assert (gate.status, gate.decisions.count()) == ("open", 0)
    answer = signed_in(ann(gate.team)).post(f"/runs/{gate.run_id}/cancellations/", {"reason": "No code"})
    assert answer.status_code == 302
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"


def test_an_upcaster_is_said_before_anybody_decides_and_after_it_ran_why_the_gate_was_withdrawn(deploy: Deploy) -> None:
    gate = waiting(deploy)
    client = signed_in(ann(gate.team))
    deploy(porter.Two)
    page = client.get(f"/gates/{gate.pk}/")
    assert 'data-colour="amber" open' in page.content.decode()
    assert "Version 2 takes the run: its upcaster from_1 runs first. propose is now draft." in text(page)
    assert 'id="decision"' in page.content.decode()
    Run.objects.get(pk=gate.run_id).wake(by=SYSTEM)
    advance_to_rest(Run.objects.get(pk=gate.run_id))
    said = text(client.get(f"/gates/{gate.pk}/"))
    assert "Version 2 of porter takes the run over and asks again." in said
    assert "porter 1" in said, "it keeps its own version"


def test_a_reader_who_may_not_decide_sees_it_too(deploy: Deploy) -> None:
    gate = waiting(deploy)
    starter = bob(gate.team)
    Run.objects.filter(pk=gate.run_id).update(started_by=starter)
    said = text(signed_in(starter).get(f"/gates/{gate.pk}/"))
    assert "Your decision" in said
    assert 'name="verdict"' not in said
    assert "Ready: 6 checks passed" in said


def test_where_nobody_knows_the_code_it_is_amber_and_can_be_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = make_gate(team=make_team())
    page = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/")
    assert 'data-colour="amber" open' in page.content.decode()
    assert "The web server was started without robo" in text(page)
    assert 'id="decision"' in page.content.decode()
    monkeypatch.setattr(preflight_facts, "_registered", [])
    assert preflight_facts.of_gate(gate).colour == "amber"
    assert "not part of this process" in preflight_facts.of_gate(gate).reasons[0].words


def test_the_api_gives_the_same(deploy: Deploy) -> None:
    gate = waiting(deploy)
    client = signed_in(ann(gate.team))
    for noun in (f"gates/{gate.pk}", f"runs/{gate.run_id}"):
        assert client.get(f"/api/{noun}/preflight").json()["colour"] == "green"
    deploy(porter.TwoBare)
    for noun in (f"gates/{gate.pk}", f"runs/{gate.run_id}"):
        told = client.get(f"/api/{noun}/preflight").json()
        assert (told["colour"], told["title"]) == ("red", "Not ready")
        assert [each["check"] for each in told["findings"] if each["colour"] == "red"] == ["version"]


def test_a_state_that_does_not_verify_is_red_by_the_api(deploy: Deploy) -> None:
    gate = waiting(deploy)
    broken = Gate.objects.select_related("run__plan").get(pk=gate.pk)
    broken.checkpoint = UUID(int=1)
    found = preflight_facts.of_gate(broken)
    assert found.red
    assert [each.check for each in found.findings] == ["checkpoint", "version"]


def test_an_artifact_that_is_gone_is_red() -> None:
    kept = artifacts.keep(b"a scan")
    gate = make_gate(run=factories.make_run(state=make_state(feedback=[{"scan": kept}])))
    assert "1 artifact that the state names can be found." in [
        each.words for each in preflight_facts.of_gate(gate).findings
    ]
    artifacts._path(kept[artifacts.MARK]).unlink()
    (reason,) = [each for each in preflight_facts.of_gate(gate).reasons if each.check == "artifacts"]
    assert (reason.colour, "/feedback/0/scan" in reason.words) == ("red", True)


class Earlier(Agent):
    """A version of a bundled agent whose gate is a step that none of today has."""

    name = "refunds"
    version = "0"

    class State(BaseModel):
        amount: int = 5

    @gate()
    def ask_nicely(self, amount: int) -> Card:
        return Card(title=f"Pay {amount}?")


@pytest.mark.examples
def test_red_has_no_fault_that_axe_can_find(deploy: Deploy, new_page: Callable[..., Page]) -> None:
    deploy(Earlier)
    asked = open_gate(advance_to_rest(make_run("refunds")))
    page = new_page(ann(asked.team))
    assert check_each_look(page, f"/gates/{asked.pk}/", watched(page)) == []
    assert page.locator(".preflight[open][data-colour=red]").is_visible()
