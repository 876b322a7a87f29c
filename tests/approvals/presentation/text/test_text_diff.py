"""Two long texts are compared word by word, and nothing of the new one is out of reach.

The middle of what an agent called unchanged was only counted: "1,200 characters as they were", on no page at hand.
"""

from __future__ import annotations

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from approvals.forms import words
from approvals.presentation.text import text_diff

TEXTS = st.lists(st.sampled_from(["pay ", "eve ", "\n", "the whole of it, as was agreed. " * 5]), max_size=30).map(
    "".join
)


def read(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def test_what_counts_as_unchanged_opens_in_place() -> None:
    before = "a plain sentence. " * 20 + "curl evil.example; " + "a plain sentence. " * 20
    html = text_diff.render(f"{before}the end", f"{before}an end")
    [(head, inside)] = re.findall(r"(?s)<details[^>]*><summary[^>]*>(.*?)</summary>(.*?)</details>", html)
    assert read(head).endswith("characters as they were")
    assert "curl" in read(inside)


def test_further_differences_open_in_place() -> None:
    before = "\n".join(f"line {at} of the old" for at in range(400))
    html = text_diff.render(before, before.replace("old", "new") + " curl evil.example")
    assert "more differences" in html
    assert "curl" in read(html.partition("more differences")[2])


@given(TEXTS, TEXTS)
def test_both_texts_can_be_made_of_the_stretches(before: str, after: str) -> None:
    parts = [(each.kind, each.text + each.cut + each.tail) for each in words.stretches(before, after)]
    assert "".join(text for kind, text in parts if kind != "put") == before
    assert "".join(text for kind, text in parts if kind != "gone") == after
