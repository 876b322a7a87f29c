"""What a state may hold, what is refused and where, and that every value has one canonical form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import MOST_VALUES, decode_canonical, encode_canonical, parse_json
from tests.factories.arbitrary_states import values


@given(values)
def test_the_canonical_form_is_the_standard_librarys(value: Any) -> None:
    expected = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    assert encode_canonical(value) == expected.encode()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_doubles_keep_every_bit(numbers: list[float]) -> None:
    assert list(map(repr, decode_canonical(encode_canonical(numbers)))) == list(map(repr, numbers))
    assert encode_canonical(numbers) == json.dumps(numbers, separators=(",", ":")).encode()


@given(values)
def test_what_was_written_is_read_back_with_its_types(value: Any) -> None:
    assert repr(decode_canonical(encode_canonical(value))) == repr(json.loads(json.dumps(value, sort_keys=True)))


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any]) -> None:
    assert encode_canonical(dict(reversed(value.items()))) == encode_canonical(value)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def circle() -> Any:
    value: dict[str, Any] = {"inner": []}
    value["inner"].append(value)
    return value


REFUSED = [
    ({"a": [1, float("nan")]}, "/a/1", "nan"),
    ({"a": float("-inf")}, "/a", "inf"),
    ({"a/b": {"~": "x\ud800"}}, "/a~1b/~0", "lone surrogate"),
    ({"a": {"\udfff": 1}}, "/a", "lone surrogate"),
    ({"a": {1: 2}}, "/a", "no text"),
    ({"a": {True: 2}}, "/a", "no text"),
    ([1, {"when": object()}], "/1/when", "object"),
    ([b"bytes"], "/0", "bytes"),
    ([{1, 2}], "/0", "set"),
    ([10**5000], "/0", "too many digits"),
]


@pytest.mark.parametrize(("value", "pointer", "reason"), REFUSED)
def test_what_cannot_be_saved_is_refused_by_its_pointer(value: Any, pointer: str, reason: str) -> None:
    with pytest.raises(ValueRefused) as refused:
        encode_canonical(value)
    assert refused.value.pointer == pointer
    assert reason in refused.value.reason


def test_nesting_ends_at_128_levels() -> None:
    assert decode_canonical(encode_canonical(deep(128))) == deep(128)
    for value in (deep(130), deep(5000), circle()):
        with pytest.raises(ValueRefused, match="nested deeper"):
            encode_canonical(value)


UNREADABLE = [
    ('{"a": {"k": 1, "k": 2}}', "/a", "'k' twice"),
    ('[{"x": NaN}]', "/0/x", "NaN"),
    ('{"a": -Infinity}', "/a", "-Infinity"),
    ('{"a": 1e999}', "/a", "too large"),
    ('{"a": "\\ud800"}', "/a", "lone surrogate"),
    ('{"a": ' + "9" * 5000 + "}", "/a", "too many digits"),
    ("[" * 100_000, "", "nested deeper"),
    ("{nope}", "", "is not JSON"),
    ("", "", "is not JSON"),
    (b"\xff\xfe", "", "not UTF-8"),
]


@pytest.mark.parametrize(("text", "pointer", "reason"), UNREADABLE)
def test_text_from_outside_is_refused_by_its_pointer(text: str | bytes, pointer: str, reason: str) -> None:
    with pytest.raises(ValueRefused) as refused:
        parse_json(text)
    assert refused.value.pointer == pointer
    assert reason in refused.value.reason


@given(values)
def test_text_from_outside_is_read_as_it_stands(value: Any) -> None:
    assert repr(parse_json(json.dumps(value))) == repr(value)


def test_a_wide_integer_in_a_text_is_still_text() -> None:
    value = {"n": 2**96, "s": str(2**96)}
    assert decode_canonical(encode_canonical(value)) == value


def test_a_text_of_more_values_than_anybody_sends_is_refused_before_it_is_read() -> None:
    """`[]` takes two bytes in a text and sixty in memory."""
    many = "[" + "[]," * MOST_VALUES + "[]]"
    with pytest.raises(ValueRefused, match="has more than 250,000 values"):
        parse_json(many)


def test_commas_and_brackets_in_a_string_are_no_values() -> None:
    text = '{"said": "' + ',[{\\"' * MOST_VALUES + '"}'
    assert len(parse_json(text)["said"]) == 4 * MOST_VALUES


@pytest.mark.parametrize("text", ['"' + "," * 250_001 + '\\"' * 500_000, '\\"' * 500_000 + "," * 250_001])
def test_a_text_that_never_ends_is_looked_through_once(text: str) -> None:
    """Each of its quotation marks was taken for the beginning of another text: that took hours."""
    with pytest.raises(ValueRefused):
        parse_json(text)
