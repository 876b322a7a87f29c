"""The word-level difference of two texts: whole, small, and affordable."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from approvals.forms import words
from tests.harness.examples import many

texts = st.text(alphabet="ab \n.,é", max_size=60)


def told(before: str, after: str) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in words.stretches(before, after)]


def test_a_word_that_changed_is_struck_out_beside_the_new_one() -> None:
    assert told("pay the frames now", "pay the lenses now") == [
        ("same", "pay the "), ("gone", "frames"), ("put", "lenses"), ("same", " now"),
    ]  # fmt: skip


def test_what_stayed_far_from_a_change_is_cut_out_and_kept_whole() -> None:
    before = "x " * 500 + "one" + " y" * 500
    first, gone, put, last = words.stretches(before, before.replace("one", "two"))
    assert (gone.text, put.text) == ("one", "two")
    assert len(first.cut) == len(last.cut) == 1000 - words.AROUND
    assert (first.text, last.tail) == ("", "")
    assert len(first.tail) == len(last.text) == words.AROUND


@settings(max_examples=many(300))
@given(texts, texts)
def test_what_stayed_and_went_is_the_old_text_and_what_stayed_and_came_the_new(before: str, after: str) -> None:
    found = list(words._merged(words._compared(words._TOKEN.findall(before), words._TOKEN.findall(after))))
    assert "".join(each.text for each in found if each.kind != "put") == before
    assert "".join(each.text for each in found if each.kind != "gone") == after


def test_sixty_thousand_characters_are_compared_within_bounds() -> None:
    before = "".join(f"Line {at} of the letter, as it was.\n" for at in range(1_700))
    after = before.replace("Line 4 ", "Row 4 ").replace("Line 1600 ", "Row 1600 ")
    assert [text for kind, text in told(before, after) if kind == "put"] == ["Row", "Row"]
    noise = "".join(chr(97 + at * at % 26) + " " for at in range(30_000))
    assert {kind for kind, _ in told(noise, noise[::-1] + "z")} <= {"same", "gone", "put"}
