"""Which places a schema hides, and what a placeholder may stand for."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, SecretBytes, SecretStr

from agents.definition import fields
from approvals.schema import redact, walk
from checkpoints.errors import ValueRefused
from checkpoints.values import json_pointer, patch

PLACES = [
    "/direct", "/raw", "/by_name/a~1b/0", "/items/0/key", "/items/1/key", "/either/key", "/pair/1", "/more/0/direct",
]  # fmt: skip


class Item(BaseModel):
    key: SecretStr
    n: int = 0


class State(BaseModel):
    """Secrets in every kind of place."""

    plain: str = "plain"
    direct: SecretStr | None = None
    raw: SecretBytes | None = None
    by_name: dict[str, list[SecretStr]] = {}
    items: list[Item] = []
    either: Item | str | None = None
    pair: tuple[int, SecretStr] | None = None
    more: list[State] = []


VALUE: dict[str, Any] = fields.normalised(
    State,
    {
        "direct": "one", "raw": "two", "by_name": {"a/b": ["three"]}, "items": [{"key": "four"}, {"key": "five"}],
        "either": {"key": "six"}, "pair": [1, "seven"], "more": [{"direct": "eight"}],
    },
)  # fmt: skip
VEIL = fields.veil(State)


def test_every_place_is_found_and_hidden_and_nothing_else() -> None:
    assert list(VEIL.places(VALUE)) == PLACES
    masked = VEIL.masked(VALUE)
    assert [at for at in PLACES if json_pointer.find_value(masked, at) != redact.MASK] == []
    assert (masked["plain"], masked["items"][0]["n"], masked["more"][0]["direct"]) == ("plain", 0, redact.MASK)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"allOf": [{"writeOnly": True}]}}},
        {"properties": {"a": {"oneOf": [{"type": "string"}, {"format": "password"}]}}},
        {"patternProperties": {"^b": {"writeOnly": True}}},
        {"additionalProperties": {"$ref": "#/$defs/s"}, "$defs": {"s": {"writeOnly": True}}},
        {"if": {}, "then": {"properties": {"a": {"writeOnly": True}}}},
        {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"format": "password"}}},
        {"patternProperties": {"$defs": {"writeOnly": True}}},
        {"properties": {"a": {"$ref": "#/$defs/Key%3Ctext%3E"}}, "$defs": {"Key<text>": {"writeOnly": True}}},
        {"$ref": "#/$defs/me", "$defs": {"me": {"properties": {"a": {"writeOnly": True, "$ref": "#/$defs/me"}}}}},
    ],
    ids=str,
)  # fmt: skip
def test_wherever_a_schema_says_it(schema: dict[str, Any]) -> None:
    assert redact.veil_marks(schema).masked({"a": "secret"}) == {"a": redact.MASK}


def test_what_has_many_parts_or_names_of_keywords_is_hidden_and_what_refers_to_itself_ends() -> None:
    """The secret one of many branches was not read, so that its value was shown."""
    plain = [{"title": str(n)} for n in range(walk.MOST + 100)]
    for branches, shown in (([{"writeOnly": True}, *plain], redact.MASK), (plain, "secret")):
        assert redact.veil_marks({"properties": {"a": {"anyOf": branches}}}).masked({"a": "secret"}) == {"a": shown}

    schema = {"properties": {name: {"writeOnly": True} for name in ("$defs", "default", "properties")}}
    value = {"$defs": "one", "default": "two", "properties": "three"}
    assert redact.veil_marks(schema).masked(value) == dict.fromkeys(value, redact.MASK)

    for ref in ("#", "#/$defs/x", "#/nowhere", "https://elsewhere/", "#x"):
        assert not redact.veil_marks({"$ref": ref, "$defs": {"x": {"$ref": "#/$defs/x"}}})


def test_an_item_that_moves_takes_its_secret_along() -> None:
    text = VEIL.masked(VALUE, named=True)
    text["items"] = text["items"][::-1][:1]
    assert VEIL.restore(text, VALUE)["items"] == [{"key": "five", "n": 0}]


def test_a_placeholder_is_no_value_elsewhere_and_one_of_nothing_is_refused() -> None:
    """Put into a plain field it would have shown the secret to everybody."""
    for place in ("/plain", "/either", "/pair/1", "/items/0/n"):
        text = patch.put(VEIL.masked(VALUE, named=True), place, redact.placeholder_for("/direct"))
        with pytest.raises(ValueRefused) as refused:
            VEIL.restore(text, VALUE)
        assert refused.value.pointer == place
    for odd in (redact.MASK, redact.placeholder_for("/items/7/key"), redact.MASK + "x", redact.MASK + " direct"):
        with pytest.raises(ValueRefused):
            VEIL.restore({**VALUE, "direct": redact.MASK + odd}, VALUE)


def test_a_difference_says_that_it_is_another_and_not_which() -> None:
    rows = [{"pointer": "/direct", "kind": "changed", "before": "one", "after": "two"}]
    assert VEIL.rows(rows)[0] | {"before": "", "after": ""} == rows[0] | {"before": "", "after": ""}
    assert "two" not in str(VEIL.rows(rows))
    assert "another" in str(VEIL.rows(rows))
    [patched] = VEIL.patch([{"op": "add", "path": "/items/0", "value": {"key": "new"}}])
    assert patched["value"] == {"key": redact.placeholder_for("/items/0/key")}
