"""Pinned values as people read them: all of each, and no JSON where there is a shape for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.presentation.text import spelled_out
from checkpoints.values.artifacts import MARK
from tests.approvals.views.test_files import plan
from tests.factories import ann, make_action, make_card, make_gate, make_run, make_state, make_team
from tests.harness.signed_in_clients import signed_in

FILE = {MARK: "a" * 64, "size": 24, "media_type": "image/png", "name": "scan.png"}
GONE = '<span class="hint">not there</span>'


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ann@example.org", "ann@example.org"),
        ("", '<span class="hint">empty</span>'),
        (None, "null"),
        (True, "true"),
        (["a, b", "c"], '<ul class="values"><li>a, b</li><li>c</li></ul>'),
        (["", 1], '<ul class="values"><li><span class="hint">empty</span></li><li>1</li></ul>'),
        ([], '<span class="hint">none</span>'),
        ({}, '<span class="hint">no fields</span>'),
        (
            {"city": "Bern", "lines": [1, 2]},
            '<table class="values"><tr><th scope="row"><bdi>city</bdi></th><td>Bern</td></tr>'
            '<tr><th scope="row"><bdi>lines</bdi></th><td><ul class="values"><li>1</li><li>2</li></ul></td></tr>'
            "</table>",
        ),
        (
            [{"sku": "A", "n": 1}, {"sku": "B", "why": ""}],
            '<table class="values"><thead><tr><th scope="col"><bdi>sku</bdi></th><th scope="col"><bdi>n</bdi></th>'
            f'<th scope="col"><bdi>why</bdi></th></tr></thead><tbody><tr><td>A</td><td>1</td><td>{GONE}</td></tr>'
            f'<tr><td>B</td><td>{GONE}</td><td><span class="hint">empty</span></td></tr></tbody></table>',
        ),
    ],
)
def test_a_value_is_spelled_out(value: Any, said: str) -> None:
    assert spelled_out.out(value) == said


def test_what_is_nested_deeper_than_anybody_lays_out_is_json_and_whole() -> None:
    deep = {"a": {"b": {"c": {"d": "x" * 5_000}}}}
    said = spelled_out.out(deep)
    assert said.count("<table") == 3
    assert "x" * 5_000 in said
    assert "&quot;d&quot;" in said


def test_a_file_among_the_values_is_said_as_a_file() -> None:
    assert "scan.png" in spelled_out.out([FILE, FILE])
    assert MARK not in spelled_out.out([FILE, FILE])


def test_no_value_and_no_name_becomes_markup() -> None:
    evil = "<img src=x>\u202e"
    for value in ([evil], {evil: evil}, [{evil: evil}, {evil: evil}], {"a": {"b": {"c": {"d": evil}}}}):
        said = spelled_out.out(value)
        assert "<img" not in said
        assert "U+202E" in said or "\\u202e" in said.lower() or "codepoint" in said


def test_the_gates_page_and_its_preview_spell_a_pinned_list_out() -> None:
    team = make_team()
    run = make_run(team=team, state=make_state(order={"to": ["a@example.org", "b@example.org"]}))
    action = make_action(id="refund", pointer="/order", pinned=["/to"], tool="mail.send")
    gate = make_gate(run=run, team=team, card=make_card(actions=[action]))
    client = signed_in(ann(team))
    for page in (client.get(f"/gates/{gate.pk}/"), client.get(f"/gates/{gate.pk}/preview/")):
        text = page.content.decode()
        assert '<ul class="values"><li>a@example.org</li><li>b@example.org</li></ul>' in text


def test_the_frame_of_a_pinned_list_says_when_it_was_changed_below(new_page: Callable[..., Page]) -> None:
    """It went on showing what was proposed while other values stood in the form."""
    team = make_team()
    edited = plan(to={"type": "array", "items": {"type": "string"}})
    run = make_run(team=team, plan=edited, state=make_state(order={"to": ["a@example.org", "b@example.org"]}))
    action = make_action(id="refund", pointer="/order", pinned=["/to"], tool="mail.send", edits=True)
    gate = make_gate(run=run, team=team, card=make_card(actions=[action]))
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    said = page.locator("[data-pin-parts]")
    expect(said).to_be_hidden()
    page.fill('[name="args.refund/to/0"]', "c@example.org")
    expect(said).to_be_visible()
    page.click("[data-put-back]:visible")
    expect(said).to_be_hidden()
    page.locator('[data-change][value*="remove"]').first.click()
    expect(said).to_be_visible()
