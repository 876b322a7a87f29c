"""What was typed over one version of a value and another version of it become one form, and no text is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.forms import Form, build, merging, names
from approvals.forms.merging import MergedTexts, merge_stretches, order, three_ways

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "amount": {"type": "integer"},
        "text": {"type": "string", "format": "multiline"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["sku", "count"],
            },
        },
    },
    "required": ["to", "amount", "text", "lines"],
}
A, B, C, D = ({"sku": sku, "count": 1} for sku in "abcd")
OLD: dict[str, Any] = {"to": "ann", "amount": 7, "text": "one\ntwo\nthree\nfour\n", "lines": [A, B, C]}


def merge(
    typed: Mapping[str, str], new: Any, old: Any = None, schema: Any = None, known: Mapping[str, str] | None = None
) -> MergedTexts:
    """Merge texts that were typed over the old value, at which the `known` conflicts are open."""

    def drawn(value: Any, texts: Mapping[str, str]) -> Form:
        return build(schema or SCHEMA, value, prefix="args.x", posted=texts)

    posted = {f"args.x{place}": text for place, text in typed.items()}
    open_ones = {f"args.x{place}": text for place, text in (known or {}).items()}
    return merging.merged(
        drawn(OLD if old is None else old, posted), None if new is None else lambda t: drawn(new, t), open_ones
    )


def value(typed: MergedTexts, new: Any) -> Any:
    return build(SCHEMA, new, prefix="args.x", posted=typed.texts).value


@pytest.mark.parametrize(
    ("typed", "changed", "texts", "conflicts"),
    [
        ({"/to": "bob"}, {"amount": 9}, {"/to": "bob"}, {}),
        ({"/to": "bob"}, {"to": "bob"}, {}, {}),
        ({"/to": "bob"}, {"to": "eve"}, {"/to": "bob"}, {"/to": "bob"}),
        ({"/amount": "nine"}, {"amount": 9}, {"/amount": "nine"}, {"/amount": "nine"}),  # though it cannot be read
        ({"/amount": "nine"}, {}, {"/amount": "nine"}, {}),
        (
            {"/text": "ONE\ntwo\nthree\nfour\n"}, {"text": "one\ntwo\nthree\nFOUR\n"},
            {"/text": "ONE\ntwo\nthree\nFOUR\n"}, {},
        ),
        (
            {"/text": "one\nTWO\nthree\nfour\n"}, {"text": "one\nzwei\nthree\nfour\n"},
            {"/text": "one\nTWO\nthree\nfour\n"}, {"/text": "one\nTWO\nthree\nfour\n"},
        ),
        ({"/lines/1/count": "5"}, {"lines": [D, A, B, C]}, {"/lines/2/count": "5"}, {}),  # it follows its item
        ({"/lines/1/count": "5"}, {"lines": [A, C]}, {}, {"/lines/~gone1/count": "5"}),  # its item is gone
        (
            {"/lines/1/count": "5"}, {"lines": [A, {**B, "count": 3}, C]},
            {"/lines/1/count": "5"}, {"/lines/1/count": "5"},
        ),
        (
            {"!order/lines": "/0/2/~new1", "/lines/~new1/sku": "n", "/lines/~new1/count": "2"},
            {"lines": [D, A, B, C]},
            {"!order/lines": "/0/1/3/~new1", "/lines/~new1/sku": "n", "/lines/~new1/count": "2"}, {},
        ),
        ({"!order/lines": "/2/1/0"}, {"lines": [B, A, C]}, {"!order/lines": "/2/0/1"}, {"!order/lines": "/2/0/1"}),
    ],
)  # fmt: skip
def test_changes_of_both(typed: Any, changed: Any, texts: Any, conflicts: Any) -> None:
    made = merge(typed, {**OLD, **changed})
    assert made.texts == {f"args.x{place}": text for place, text in texts.items()}
    assert made.conflicts == {f"args.x{place}": text for place, text in conflicts.items()}


def test_what_was_typed_into_a_value_that_is_gone_is_a_conflict() -> None:
    assert merge({"/to": "bob"}, None).conflicts == {"args.x/to": "bob"}
    made = merge({"/text": "t", "/lines/0/sku": "z"}, {**OLD, "lines": "none"})
    assert made.conflicts == {"args.x/lines/~gone0/sku": "z"}


def test_what_was_typed_into_an_item_that_is_gone_is_no_conflict_of_the_one_in_its_place() -> None:
    """Choosing "Yours" put the text for the item that others took out into the item that has its number now."""
    typed = {"/lines/0/count": "5", "/lines/1/sku": "z"}
    for left in ([C], [], [C, D, A]):
        new = {**OLD, "lines": left}
        made = merge(typed, new, {**OLD, "lines": [A, B, C]})
        drawn = merging.rendered(build(SCHEMA, new, prefix="args.x"))
        assert not made.conflicts.keys() & drawn.keys()
        assert sorted([*made.conflicts.values(), *made.texts.values()]) == ["5", "z"]


def test_an_open_conflict_stays_with_its_item_however_often_others_edit() -> None:
    """It kept the number that the item had, under which the next version had another one."""
    known = {"/lines/1/count": "5"}
    for lines, name in (
        ([D, A, B, C], "/lines/2/count"),
        ([A, C], "/lines/~gone1/count"),
        ([A, B, D], "/lines/1/count"),
    ):
        assert merge({}, {**OLD, "lines": lines}, known=known).conflicts == {f"args.x{name}": "5"}
    assert merge({}, OLD, known={"/lines/~gone1/count": "5"}).conflicts == {"args.x/lines/~gone1/count": "5"}


def test_a_merged_form_gives_the_value_of_both_changes() -> None:
    new = {**OLD, "to": "eve", "lines": [D, A, {**B, "sku": "bb"}, C]}
    made = merge({"/amount": "8", "/lines/1/count": "5", "!order/lines": "/0/1"}, new)
    assert value(made, new) == {**new, "amount": 8, "lines": [D, A, {"sku": "bb", "count": 5}]}
    assert made.conflicts == {}


def test_a_text_of_very_many_lines_is_no_hour_of_work() -> None:
    base = "a\n" * 30_000
    assert three_ways(base, "b\n" + base, base + "c\n", lines=True) == (None, True)


PARTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d"]), max_size=8).map("".join)


@given(PARTS, PARTS, PARTS)
def test_no_line_that_somebody_wrote_is_lost(base: str, mine: str, theirs: str) -> None:
    text, opposed = three_ways(base, mine, theirs, lines=True)
    assert (text is None) is opposed
    if text is None:
        return
    for side, other in ((mine, theirs), (theirs, mine)):
        for line in set(side.split("\n")) - set(base.split("\n")):
            assert line in text.split("\n"), (line, other)
    if mine == base:
        assert text == theirs
    if theirs == base:
        assert text == mine


IDS = st.permutations([str(at) for at in range(5)])


@given(IDS, st.data())
def test_no_item_that_was_added_or_kept_by_both_is_lost(theirs: list[str], data: st.DataObject) -> None:
    base = [str(at) for at in range(5)]
    theirs = [*theirs[: data.draw(st.integers(0, 5))], *(["9"] if data.draw(st.booleans()) else [])]
    mine = data.draw(IDS)[: data.draw(st.integers(0, 5))]
    mine = [*mine, *data.draw(st.sampled_from([[], ["~new1"], ["~new1", "~new2"]]))]
    text, _ = order(base, mine, theirs)
    ids = names.ids_of(text)
    assert len(ids) == len(set(ids))
    assert {each for each in mine if names.is_new(each)} <= set(ids)
    assert set(mine) & set(theirs) <= set(ids)
    assert {"9"} & set(theirs) <= set(ids)


VALUES = st.fixed_dictionaries(
    {
        "to": st.sampled_from(["ann", "bob", "eve"]),
        "amount": st.integers(0, 3),
        "text": PARTS,
        "lines": st.lists(st.sampled_from([A, B, C, D]), max_size=4),
    }
)


@given(VALUES, VALUES, VALUES, st.booleans())
def test_no_typed_text_is_ever_lost(old: Any, new: Any, wish: Any, stands: bool) -> None:
    typed = {"/to": wish["to"], "/amount": f"{wish['amount']}x", "/text": wish["text"]}
    typed |= {f"/lines/{at}/sku": f"s{at}" for at in range(len(old["lines"]))}
    form = build(SCHEMA, old, prefix="args.x", posted={f"args.x{place}": text for place, text in typed.items()})
    made = merge(typed, new if stands else None, old)
    for name, text in form.touched.items():
        kept = [*made.texts.values(), *made.conflicts.values()]
        added = [line for line in text.split("\n") if line not in merging.rendered(form)[name].split("\n")]
        there = text in kept or (name.endswith("/text") and all(any(line in each for each in kept) for line in added))
        now = merging.rendered(build(SCHEMA, new, prefix="args.x")) if stands else {}
        assert there or now.get(name) == text, (name, text, made)


@pytest.mark.parametrize(
    ("mine", "theirs", "merged", "opposed"),
    [
        ({"a": 2, "b": {"c": 1}}, {"a": 1, "b": {"c": 3}}, {"a": 2, "b": {"c": 3}}, []),
        ({"a": 2, "b": {"c": 1}}, {"a": 3, "b": {"c": 1}}, {"a": 2, "b": {"c": 1}}, ["/a"]),
        ({"b": {"c": 1}}, {"a": 1, "b": {"c": 1}, "n": 1}, {"b": {"c": 1}, "n": 1}, []),
        ({"b": {"c": 1}}, {"a": 9, "b": {"c": 1}}, {"b": {"c": 1}}, ["/a"]),
        ({"a": 1, "b": {"c": [1]}}, {"a": 1, "b": {"c": [2]}}, {"a": 1, "b": {"c": [1]}}, ["/b/c"]),
    ],
)
def test_values_of_both(mine: Any, theirs: Any, merged: Any, opposed: list[str]) -> None:
    assert merging.values({"a": 1, "b": {"c": 1}}, mine, theirs) == (merged, opposed)


SEQUENCES = st.lists(st.sampled_from("abcdef"), max_size=8)


def merged_stretches(base: str, mine: str, theirs: str) -> list[str]:
    """Return each stretch after both changes; `mine|theirs` where they oppose each other."""
    found = merge_stretches(list(base), list(mine), list(theirs))
    return [
        "".join(stretch.merged) if stretch.merged is not None else f"{''.join(stretch.mine)}|{''.join(stretch.theirs)}"
        for stretch in found
    ]


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "after"),
    [
        ("abcde", "aXcde", "abcdY", ["a", "X", "cd", "Y"]),
        ("abc", "abXc", "abYc", ["ab", "X|Y", "c"]),
        ("abc", "aXc", "aXc", ["a", "X", "c"]),
        ("abcd", "aXcd", "abYd", ["a", "Xc|bY", "d"]),  # nothing unchanged parts them
        ("abc", "c", "abcX", ["", "c", "X"]),
        ("", "X", "Y", ["X|Y"]),
    ],
)
def test_changes_apart_are_both_kept_and_changes_of_one_place_oppose_each_other(
    base: str, mine: str, theirs: str, after: list[str]
) -> None:
    assert merged_stretches(base, mine, theirs) == after


@given(SEQUENCES, SEQUENCES, SEQUENCES)
def test_the_stretches_are_each_version_in_order(base: list[str], mine: list[str], theirs: list[str]) -> None:
    found = list(merge_stretches(base, mine, theirs))
    versions: list[Sequence[str]] = [base, mine, theirs]
    for at, version in enumerate(versions):
        assert [item for stretch in found for item in stretch[at]] == version


@given(SEQUENCES, SEQUENCES)
def test_where_one_changed_nothing_the_other_counts(base: list[str], changed: list[str]) -> None:
    for mine, theirs in ((base, changed), (changed, base)):
        parts = [stretch.merged for stretch in merge_stretches(base, mine, theirs)]
        assert [item for part in parts for item in part or ()] == changed
        assert None not in parts
