"""A page has room for so much of other people's words; what has none is counted, and one step away."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from approvals.presentation.text import line_diff, size_limit, untrusted
from approvals.presentation.text.invisible import badge_count
from tests.agents.remote.outside_program import Program
from tests.factories import MEMBER, make_team, make_user
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import signed_in

PAGE = 3_000_000  # bytes
END = "the very end"
TEXTS = {
    "letters": "x" * 90_000,
    "hosts that look alike": "p\u0430ypal.com " * 6_000,
    "gaps": ("a" + " " * 24) * 3_500,
}


def asked(*, actions: list[dict[str, Any]], **more: Any) -> tuple[Client, int]:
    """(a reviewer, the gate that a program posted)."""
    program = Program(team=make_team(may=MEMBER))
    told = program.ok(program.post("gates", {"title": "Wire", "actions": actions, **more}))
    return signed_in(make_user("Rita Reviewer", program.team)), told["gate"]


@pytest.mark.parametrize("text", first_alone(TEXTS.values()), ids=TEXTS)
@pytest.mark.parametrize("part", ["", pytest.param("preview/", marks=pytest.mark.long)])
def test_fifty_actions_with_all_that_may_be_pinned_fit_on_a_page_and_each_is_reachable(text: str, part: str) -> None:
    """The page had 73 MB and took 52 seconds."""
    actions = [{"id": f"wire{n}", "arguments": {"to": text + END}, "pinned": ["/to"]} for n in range(50)]
    reader, gate = asked(actions=actions)
    page = reader.get(f"/gates/{gate}/{part}").content.decode()
    assert len(page.encode()) < PAGE
    assert "characters are not shown here" in page
    links = {html.unescape(each) for each in re.findall(r'href="(/gates/\d+/values/\?action=wire49[^"]*)"', page)}
    assert links == {f"/gates/{gate}/values/?action=wire49&at=%2Fto"}
    whole, link = "", links.pop()
    for start in range(0, len(text), 50_000):
        whole = reader.get(f"{link}&from={start}").content.decode()
    assert END in whole


def test_what_people_usually_ask_is_drawn_whole() -> None:
    text = "A line of a long letter, in plain words. " * 2_000
    reader, gate = asked(actions=[{"id": "wire", "arguments": {"to": text}, "pinned": ["/to"]}])
    page = reader.get(f"/gates/{gate}/").content.decode()
    assert page.count(text.strip()) >= 1


def test_many_quotes_of_long_texts_fit_on_a_page() -> None:
    state = {f"mail{n}": "y" * 60_000 for n in range(50)}
    quotes = [{"label": "Marit", "pointer": f"/mail{n}"} for n in range(50)]
    reader, gate = asked(actions=[{"id": "wire", "arguments": {"to": "ACME"}}], state=state, quotes=quotes)
    assert len(reader.get(f"/gates/{gate}/").content) < PAGE


def test_a_list_that_has_no_room_says_how_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_limit, "PAGE", 1_000)
    reader, gate = asked(actions=[{"id": "wire", "arguments": {"to": ["ACME"] * 300}, "pinned": ["/to"]}])
    page = reader.get(f"/gates/{gate}/").content.decode()
    assert "list of 300, not shown here" in page
    assert f'href="/gates/{gate}/values/?action=wire&amp;at=%2Fto"' in page


def test_what_is_drawn_for_no_page_has_no_bound() -> None:
    assert untrusted.render("z" * 2_000_000, clamp=False) == "z" * 2_000_000


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("plain words", (0, 0)),
        ("a\u200bb\u202ec", (2, 0)),
        ("a" + "\n" * 9 + "b", (0, 8)),
        ("\r\n" * 9 + "b", (0, 9)),
        ("e\u0301" * 50, (0, 0)),
        ("Z" + "\u0301\u0316" * 5, (10, 0)),
        ("\U0001f469\u200d\U0001f4bb and \u2764\ufe0f", (0, 0)),
        ("\u200b" * 1_000_000, (200_000, 0)),
    ],
)
def test_what_cannot_be_seen_is_counted(text: str, counted: tuple[int, int]) -> None:
    assert badge_count(text) == counted


def test_marks_of_a_text_that_was_drawn_before_take_room_as_at_first() -> None:
    room = [size_limit.PAGE, 0]
    token = size_limit._left.set(room)
    try:
        left = [(untrusted.line("p\u0430y\u200bpal once"), room[0])[1] for _ in range(3)]
    finally:
        size_limit._left.reset(token)
    assert size_limit.PAGE - left[0] == left[0] - left[1] == left[1] - left[2] > 0


def test_what_is_compared_line_by_line_is_limited_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million lines took four seconds and 400 MB, and an agent may have fifty drawings of each action."""
    text, compared = "\n" * (size_limit.PAGE // 3), list[int]()
    compare = line_diff.compared

    def counting(before: str, after: str) -> Any:
        compared.append(len(before) + len(after))
        return compare(before, after)

    monkeypatch.setattr(line_diff, "compared", counting)
    write = {"id": "Write", "arguments": {"content": text}, "draws": [{"kind": "diff", "at": "/content"}] * 50}
    reader, gate = asked(actions=[write, {**write, "id": "Again"}])
    page = reader.get(f"/gates/{gate}/").content.decode()
    assert compared == [len(text)] * 3
    assert page.count("This is too long to be drawn here. Read it in the exact arguments.") == 97
