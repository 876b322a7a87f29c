"""Charts at a gate, a sentence where nothing can be drawn, and the question which of them is to be done."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.cards.card import AnswerChoice, Card
from approvals.cards.chart import Chart
from approvals.errors import CardRefused
from approvals.models import Gate
from approvals.presentation.drawing import gantt
from tests.factories import ann, make_card, make_gate, make_run, make_state, make_team
from tests.factories.driven_runs import advance_to_rest, effects, open_gate, state
from tests.harness.browser_checks import check, is_live, watched
from tests.harness.signed_in_clients import form_of, post, signed_in

from .made_up_shops import make_waiting_run

DATA: dict[str, Any] = {
    "machines": 2,
    "operations": [[0, 0, 0, 0, 40, 0], [0, 1, 1, 60, 100, 1], [12, 0, 1, 40, 60, 2], [3, 0, 0, 40, 41, 0]],
    "downtimes": [[1, 30, 40]],
    "now": 30,
    "makespan": "not looked at",
}


def drawn(*datas: Any) -> list[gantt.DrawnChart]:
    charts = [Chart(title=f"Plan {number}", pointer=f"/{number}") for number, _ in enumerate(datas)]
    state = {str(number): data for number, data in enumerate(datas)}
    return list(gantt.charts(Card(title="Choose", charts=charts), state).drawn)


def tree(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own


def bars(svg: str) -> list[tuple[str, str, str, str, str]]:
    """(job, moved, x, width, number written) of each bar."""
    found = []
    for group in tree(svg).iter("g"):
        if group.get("class") == "bar":
            rect, text = group.find("rect"), group.find("text")
            assert rect is not None
            number = text.text or "" if text is not None else ""
            marks = group.attrib["data-job"], group.attrib["data-moved"]
            found.append((*marks, rect.attrib["x"], rect.attrib["width"], number))
    return found


def test_each_operation_is_a_bar_where_it_is_in_time_with_its_jobs_number_and_its_mark() -> None:
    [chart] = drawn(DATA)
    assert bars(chart.bars) == [
        ("0", "0", "0.00%", "40.00%", "0"),
        ("3", "0", "40.00%", "1.00%", ""),  # too short for its number, which the table still says
        ("12", "2", "40.00%", "20.00%", "12"),
        ("0", "1", "60.00%", "40.00%", "0"),
    ]
    assert [row[1] for row in chart.table] == [job for job, *_ in bars(chart.bars)]
    assert [title.text for title in tree(chart.bars).iter("title")] == ["Machine 1 stands still: 30 to 40"]
    assert chart.counted == "ends at 100; 2 of 4 operations moved, 1 of them to another place in line"


def test_the_drawing_says_in_words_what_it_shows_and_draws_what_began_before_now_as_past() -> None:
    [chart] = drawn(DATA)
    svg = tree(chart.bars)
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == (
        "Gantt chart, Plan 0: 2 machines, ends at 100; 2 of 4 operations moved, 1 of them to another place in line; "
        "machine 1 stands still from 30 to 40"
    )
    assert chart.table[1] == ["0", "3", "0", "40", "41", ""]
    assert [row[0] for row in chart.table] == ["0", "0", "1", "1"]
    assert [group.get("data-job") for group in svg.iter("g") if "data-past" in group.attrib] == ["0"]
    [shade] = [rect for rect in svg.iter("rect") if rect.get("class") == "past"]
    assert shade.get("width") == "30.00%"


def test_charts_of_one_card_share_their_time_axis_and_their_figures_stand_side_by_side() -> None:
    longer = {"machines": 1, "operations": [[0, 0, 0, 0, 400, 0]]}
    first, second = drawn(DATA, longer)
    assert (bars(first.bars)[0][3], bars(second.bars)[0][3]) == ("10.00%", "100.00%")
    assert ('id="hatch-1"' in first.bars, 'id="hatch-2"' in second.bars) == (True, True)
    card = Card(title="Choose", charts=[
        Chart(title="One", pointer="/a", figures=[("Ends at", "5"), ("Cost", "7")]),
        Chart(title="Two", pointer="/a", figures=[("Ends at", "6"), ("Found in", "3 ms")]),
    ])  # fmt: skip
    assert [(label, *texts) for label, texts in gantt.charts(card, {}).figures] == [
        ("Ends at", "5", "6"),
        ("Cost", "7", ""),
        ("Found in", "", "3 ms"),
    ]
    assert Card.from_json(card.to_json()) == card


FAULTS: list[tuple[Any, str]] = [
    ([], "its data is no object"),
    ({"operations": []}, "it does not say how many machines there are"),
    (DATA | {"machines": 10**30}, "it has to have 1 to 150 machines"),
    (DATA | {"operations": [[0, 0, 0, 0, 1, 0]] * 3_001}, "its 3,001 operations are more than the 3,000"),
    (DATA | {"operations": [[0, 0, 0, 0, 1]]}, "row 1 of its operations does not hold 6 numbers"),
    (DATA | {"operations": [[0, "0", 0, 0, 1, 0]]}, "row 1 of its operations has a job, an operation or a machine"),
    (DATA | {"operations": [[0, 0, 0, 5, 1, 0]]}, "row 1 of its operations has no start and end in this order"),
    (DATA | {"operations": [[0, 0, 0, 0, 10**400, 0]]}, "row 1 of its operations has no start and end"),
    (DATA | {"downtimes": [[0, 1]]}, "row 1 of its downtimes does not hold 3 numbers"),
    (DATA | {"now": "soon"}, "its “now” is no moment"),
]


def test_data_of_another_shape_gives_a_sentence_and_the_most_that_is_drawn_is_drawn() -> None:
    for data, fault in FAULTS:
        [chart] = drawn(data)
        assert (chart.fault.startswith(f"This chart cannot be drawn: {fault}"), chart.bars) == (True, ""), fault
    rows = [[number % 100, number // 100, number % 150, number, number + 1, 0] for number in range(3_000)]
    [chart] = drawn({"machines": gantt.MOST_MACHINES, "operations": rows})
    assert (chart.fault, len(chart.table)) == ("", gantt.MOST_OPERATIONS)


def test_names_of_machines_are_text_and_are_cut() -> None:
    [chart] = drawn(DATA | {"machines": ["</text><script>", "L\u202eathe that is much too long"]})
    assert chart.named
    assert "<script" not in chart.lanes + chart.bars
    assert "&lt;/text&gt;&lt;script" in chart.lanes
    assert "[U+202E right-to-left override]" in chart.lanes
    assert "much too long" not in chart.lanes


def test_a_chart_that_cannot_be_meant_is_refused_when_the_gate_opens() -> None:
    for chart, fault in [
        (Chart(title="A", pointer="/nowhere"), "there is nothing at /nowhere in the state to draw"),
        (Chart(title=" ", pointer="/order"), "the chart of /order needs a title"),
        (Chart(title="A", pointer="/order", kind="pie"), "is of the kind 'pie'; there is gantt"),
    ]:
        with pytest.raises(CardRefused, match=fault):
            make_gate(card=make_card(charts=[chart]))


def page_of(data: Any, **chart: Any) -> str:
    team = make_team()
    run = make_run(state=make_state(order={"plan": data}), first_step="review", team=team)
    card = make_card(charts=[Chart(pointer="/order/plan", **{"title": "The plan", **chart})])
    gate = make_gate(run=run, card=card)
    return signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()


def test_the_page_shows_a_drawing_with_no_word_of_the_data_as_markup_or_why_there_is_none() -> None:
    page = page_of(DATA, title="<b>Plan</b>", figures=[("<i>Ends</i>", "<u>5</u>")])
    assert page.count('class="gantt-bars"') == 1
    assert "Show as a table, 4 operations" in page
    assert [markup for markup in ("<b>Plan", "<i>Ends", "<u>5", "style=") if markup in page] == []
    page = page_of({"machines": 1, "operations": "none"})
    assert "This chart cannot be drawn: its operations are no list." in page
    assert 'class="gantt-bars"' not in page


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


def test_a_person_traces_a_job_through_both_charts_and_chooses_in_a_browser(
    new_page: Callable[..., Page], floor: Path
) -> None:
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
    assert check(page, "", said) == []
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
