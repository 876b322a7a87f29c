"""A gate that asks which of several things is to be done: answered, refused or sent back, by page and in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.cards.card import AnswerChoice, Card
from approvals.models import Gate
from tests.factories import ann, make_card, make_gate, make_team
from tests.factories.driven_runs import advance_to_rest, effects, open_gate, state
from tests.harness.browser_checks import check_each_look, is_live, watched
from tests.harness.signed_in_clients import form_of, post, signed_in

from .made_up_shops import make_waiting_run

NewPage = Callable[..., Page]
CHOICES: list[AnswerChoice] = [
    {"id": "local", "label": "Mend it", "grants": True},
    {"id": "global", "label": "Plan it anew", "grants": True},
    {"id": "retry", "label": "Try it"},  # an id that means permission at a recovery gate means none here
]


def asking(**card: Any) -> Card:
    return make_card(question={"text": "Which?", "choices": CHOICES}, allows=["pay"], **card)


def test_the_page_offers_each_choice_and_none_of_them_and_an_answer_grants_what_its_choice_says() -> None:
    team = make_team()
    for choice, granted in [("local", ["pay"]), ("retry", [])]:
        gate = make_gate(team=team, card=asking())
        page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
        for each in CHOICES:
            assert f'name="verdict" value="answer.{each["id"]}"' in page
        assert 'name="verdict" value="reject"' in page
        assert "Send this answer and run “Pay”" in page
        assert "What went wrong" not in page
        for verdict in ("answer.neither", "approve"):
            assert post(ann(team), gate, form_of(gate, verdict)).status_code == 422
        assert Gate.objects.get(pk=gate.pk).status == "open"
        assert post(ann(team), gate, form_of(gate, f"answer.{choice}")).status_code == 303
        outcome = Gate.objects.get(pk=gate.pk).outcome
        assert (outcome.kind, outcome.answered) == ("answered", {"choice": choice, "value": None})
        assert list(outcome.grants.values_list("effect", flat=True)) == granted
    gate = make_gate(team=team, card=asking())
    form = form_of(gate, "reject", then="back", back_to="propose", feedback="Keep job 3.")
    assert post(ann(team), gate, form).status_code == 303
    outcome = Gate.objects.get(pk=gate.pk).outcome
    assert (outcome.kind, outcome.back_to, outcome.words) == ("rejected", "propose", "Keep job 3.")


def test_a_person_traces_a_job_through_both_charts_and_chooses_in_a_browser(new_page: NewPage, floor: Path) -> None:
    run = make_waiting_run(breakdown={"machine": 1, "since": 2, "until": 5})
    page = new_page(ann(run.team))
    said = watched(page)
    page.goto(f"/gates/{open_gate(run).pk}/")
    is_live(page)
    expect(page.locator(".gantt-bars")).to_have_count(2)
    for words in ("Side by side", "Operations moved", "Found in", "Show as a table, 9 operations"):
        expect(page.get_by_text(words).first).to_be_visible()
    bar = page.locator('hp-gantt .bar[data-job="1"]').first
    bar.hover()
    expect(bar.locator("title")).to_have_text(re.compile(r"^Machine \d+, Job 1, Operation \d+, Starts \d+, Ends \d+"))
    traced = page.locator("hp-gantt .bar[data-traced]")
    expect(traced).to_have_count(6)
    page.locator("h1").hover()
    expect(traced).to_have_count(0)
    page.locator(".gantt-table summary").first.click()
    expect(page.locator(".gantt-table tbody tr").first).to_be_visible()
    expect(page.locator(".commit:visible")).to_have_count(0)
    page.keyboard.press("2")
    words = "Send “Global plan: ends at 13, 5 operations moved” and run “Send the schedule to the shop floor”"
    expect(page.locator(".commit:visible span")).to_have_text(words)
    page.locator(".commit:visible").click()
    expect(page.locator("#gate-line")).to_contain_text("Answered by Ann Okafor")
    assert advance_to_rest(run).status == "completed"
    [sheet] = [json.loads(file.read_text()) for file in floor.glob("*.json")]
    assert state(run)["chosen"] == "global"
    assert effects(run)[0].key == sheet["key"]
    assert said == []


@pytest.mark.long
@pytest.mark.examples
def test_a_gate_with_charts_has_no_fault_that_axe_can_find(new_page: NewPage, floor: Path) -> None:
    run = make_waiting_run(breakdown={"machine": 1, "since": 2, "until": 5})
    page = new_page(ann(run.team))
    said = watched(page)
    page.goto(f"/gates/{open_gate(run).pk}/")
    is_live(page)
    page.locator('[name="verdict"][value="reject"]').check()
    for summary in page.locator(".gantt-table summary").all():
        summary.click()
    assert check_each_look(page, "", said) == []
