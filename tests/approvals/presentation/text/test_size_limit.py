"""Two texts are compared by words and by lines, and a page has room for so much of them: nothing is out of reach."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from approvals.forms import words
from approvals.presentation import inbox
from approvals.presentation.drawing.impact_words import ImpactLine, WordedImpact
from approvals.presentation.text import line_diff, size_limit
from approvals.presentation.text.line_diff import HEAD, TAIL, Line, compared, counted, split
from tests.agents.remote.outside_program import Program
from tests.factories import MEMBER, make_card, make_gate, make_team, make_user
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import signed_in

PAGE = 3_000_000  # bytes
END = "the very end"
LONG = {"letters": "x" * 90_000, "hosts that look alike": "p\u0430ypal.com " * 6_000, "gaps": ("a" + " " * 24) * 3_500}


def asked(*, actions: list[dict[str, Any]], **more: Any) -> tuple[Client, int]:
    """(a reviewer, the gate that a program posted)."""
    program = Program(team=make_team(may=MEMBER))
    told = program.ok(program.post("gates", {"title": "Wire", "actions": actions, **more}))
    return signed_in(make_user("Rita Reviewer", program.team)), told["gate"]


@pytest.mark.parametrize("text", first_alone(LONG.values()), ids=LONG)
def test_fifty_actions_with_all_that_may_be_pinned_fit_on_a_page_and_each_is_reachable(text: str) -> None:
    """The page had 73 MB and took 52 seconds."""
    actions = [{"id": f"wire{n}", "arguments": {"to": text + END}, "pinned": ["/to"]} for n in range(50)]
    reader, gate = asked(actions=actions)
    page = reader.get(f"/gates/{gate}/").content.decode()
    assert len(page.encode()) < PAGE
    assert "characters are not shown here" in page
    links = {html.unescape(each) for each in re.findall(r'href="(/gates/\d+/values/\?action=wire49[^"]*)"', page)}
    assert links == {f"/gates/{gate}/values/?action=wire49&at=%2Fto"}
    whole, link = "", links.pop()
    for start in range(0, len(text), 50_000):
        whole = reader.get(f"{link}&from={start}").content.decode()
    assert END in whole


def test_a_list_that_has_no_room_says_how_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_limit, "PAGE", 1_000)
    reader, gate = asked(actions=[{"id": "wire", "arguments": {"to": ["ACME"] * 300}, "pinned": ["/to"]}])
    page = reader.get(f"/gates/{gate}/").content.decode()
    assert "list of 300, not shown here" in page
    assert f'href="/gates/{gate}/values/?action=wire&amp;at=%2Fto"' in page


def test_what_is_compared_line_by_line_is_limited_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million lines took four seconds and 400 MB, and an agent may have fifty drawings of each action."""
    monkeypatch.setattr(size_limit, "PAGE", 60_000)
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


HIDDEN = "Pay\u200bout"


def row() -> Callable[[], str]:
    gate, now = make_gate(card=make_card(title=HIDDEN)), timezone.now()
    return lambda: inbox.row(gate, now=now).html


def impact() -> Callable[[], str]:
    return lambda: WordedImpact(heading="", rows=(ImpactLine(effect="run", title="Runs", names=(HIDDEN,)),)).listing


def on_a_page(draw: Callable[[], str], *, full: bool) -> str:
    def view(request: HttpRequest) -> HttpResponse:
        if full:
            assert size_limit.takes(size_limit.PAGE)
        return HttpResponse(draw())

    return bytes(size_limit.middleware(view)(HttpRequest()).content).decode()  # type: ignore[attr-defined]


@pytest.mark.parametrize("made", [row, impact])
def test_a_page_without_room_takes_no_mark_from_another(made: Callable[[], Callable[[], str]]) -> None:
    """A row of the inbox that was first drawn on a full page kept its hidden characters unmarked on every other."""
    draw = made()
    assert "not marked above" in on_a_page(draw, full=True)
    assert "not marked above" not in on_a_page(draw, full=False)
    assert "not marked above" in on_a_page(draw, full=True)


TEXTS = st.lists(st.sampled_from(["pay ", "eve ", "\n", "the whole of it, as was agreed. " * 5]), max_size=30).map(
    "".join
)


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def test_what_counts_as_unchanged_and_further_differences_open_in_place() -> None:
    before = "a plain sentence. " * 20 + "curl evil.example; " + "a plain sentence. " * 20
    html = line_diff.render(f"{before}the end", f"{before}an end")
    [(head, inside)] = re.findall(r"(?s)<details[^>]*><summary[^>]*>(.*?)</summary>(.*?)</details>", html)
    assert plain(head).endswith("characters as they were")
    assert "curl" in plain(inside)

    before = "\n".join(f"line {at} of the old" for at in range(400))
    html = line_diff.render(before, before.replace("old", "new") + " curl evil.example")
    assert "more differences" in html
    assert "curl" in plain(html.partition("more differences")[2])


@given(TEXTS, TEXTS)
def test_both_texts_can_be_made_of_the_stretches(before: str, after: str) -> None:
    parts = [(each.kind, each.text + each.cut + each.tail) for each in words.stretches(before, after)]
    assert "".join(text for kind, text in parts if kind != "put") == before
    assert "".join(text for kind, text in parts if kind != "gone") == after


LINES = st.lists(st.sampled_from(["", " ", "a", "b", "c", "\r", "  a"]), max_size=40).map("\n".join)


@given(LINES, LINES)
def test_both_texts_can_be_made_of_the_lines_and_each_is_drawn_or_counted(before: str, after: str) -> None:
    lines = list(line_diff._all(split(before), split(after)))
    assert [line.text for line in lines if line.kind != "put"] == split(before)
    assert [line.text for line in lines if line.kind != "gone"] == split(after)
    drawn = compared(before, after)
    added, removed = counted(before, after)
    assert sum(line.count or 1 for line in drawn if "put" in (line.kind, line.of)) == added
    assert sum(line.count or 1 for line in drawn if "gone" in (line.kind, line.of)) == removed


def test_unchanged_lines_far_away_are_counted_and_the_end_is_always_there() -> None:
    before = "".join(f"{at}\n" for at in range(40))
    drawn = compared(before, before.replace("20\n", "twenty\n"))
    assert drawn[0] == Line("unchanged", count=17, of="same")
    assert [line.text for line in drawn[1:-1]] == ["17", "18", "19", "20", "twenty", "21", "22", "23"]
    assert drawn[-1] == Line("unchanged", count=16, of="same")

    drawn = compared("", "".join(f"{at}\n" for at in range(5_000)) + "rm -rf /")
    assert len(drawn) == HEAD + TAIL + 1
    assert drawn[HEAD] == Line("more", count=5_001 - HEAD - TAIL)
    assert drawn[-1].text == "rm -rf /"


def test_blanks_that_run_are_within_reach_in_a_long_row_of_blank_lines() -> None:
    """They are no line breaks alone: what was counted showed none of them."""
    blanks = ["\t", "\u00a0", "  ", "\t", "\t", "\u3000"]
    [_, row] = compared("a", "\n".join(["a", *blanks]))
    assert (row.kind, row.count, row.folded.split("\n")) == ("blank", 6, blanks)
    [_, removed] = compared("\n".join(["a", *blanks]), "a")
    assert (removed.of, removed.folded) == ("gone", "")
