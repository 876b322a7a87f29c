"""Lists, entries, unions and what may be none: changed by what buttons post, and merged with another version.

What was typed over one version of a value and another version of it become one form, and no text is lost.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from agents.definition.fields import StateSchema
from approvals.forms import ClosedNode, Form, ItemRows, applied, build, merging, names
from approvals.forms.builder import SentFields
from approvals.forms.merging import MergedTexts, merge_stretches, order, three_ways
from tests.approvals.forms.posted_forms import as_posted
from tests.harness.examples import many


class ByCard(BaseModel):
    kind: Literal["card"] = "card"
    number: str
    amount: Decimal


class ByBank(BaseModel):
    kind: Literal["bank"] = "bank"
    iban: str
    amount: Decimal


class Line(BaseModel):
    sku: str
    count: int = Field(gt=0)
    tags: list[str] = []
    lines: list[Line] = []


class Order(BaseModel):
    lines: list[Line]
    payment: Annotated[ByCard | ByBank, Field(discriminator="kind")]
    prices: dict[str, Decimal] = {}
    gift: Line | None = None
    pair: tuple[int, str] = (1, "a")
    once: set[str] = set()
    either: int | str | None = 3
    dates: list[dt.date] = []
    at: dt.datetime | None = None
    mixed: list[int | Line] = []


SCHEMA = Order.model_json_schema(mode="serialization", schema_generator=StateSchema)
ORDER: dict[str, Any] = Order(
    lines=[Line(sku="a", count=1, tags=["x"]), Line(sku="b", count=2), Line(sku="c", count=3)],
    payment=ByCard(number="1", amount=Decimal("3.00")),
    prices={"EUR": Decimal("1.00"), "a/b~c": Decimal("2.00")},
    mixed=[1, Line(sku="m", count=1)],
).model_dump(mode="json")
calm = settings(max_examples=many(60), suppress_health_check=[HealthCheck.too_slow])


def form(posted: dict[str, str] | None = None, **options: Any) -> Form:
    return build(SCHEMA, ORDER, prefix="args.o", posted=posted, **options)


def after(*changes: str, **typed: str) -> tuple[Form, dict[str, str]]:
    """The form after these buttons were pressed one by one, each on the form that the last one gave, then `typed`."""
    posted = as_posted(form())
    for change in changes:
        posted = as_posted(form(applied(posted, f"args.o{change}")))
    posted |= {f"args.o/{name.replace('__', '/')}": text for name, text in typed.items()}
    return form(posted), posted


def names_of(items: Any) -> list[Any]:
    return [each.get("sku") for each in items]


def test_a_form_that_nobody_touched_gives_back_the_very_value_and_a_tuple_keeps_its_places() -> None:
    assert form(as_posted(form())).value is ORDER
    assert form(as_posted(form())).touched == {}
    nodes = {node.path: node for node in form().nodes if isinstance(node, ItemRows)}
    assert [(nodes[each].grows, nodes[each].moves) for each in ("/pair", "/once", "/prices")] == [
        (False, False), (True, False), (True, False),
    ]  # fmt: skip
    assert form({"args.o!order/pair": "/1"}).value is ORDER, "a tuple keeps its places"


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("/lines/0:remove", ["b", "c"]),
        ("/lines/2:up", ["a", "c", "b"]),
        ("/lines/0:down", ["b", "a", "c"]),
        ("/lines:add", ["a", "b", "c", None]),
        ("/nowhere/7:remove", ["a", "b", "c"]),
        ("/lines/0:fly", ["a", "b", "c"]),
    ],
)
def test_a_button_changes_the_list_and_nothing_else(change: str, left: list[str | None]) -> None:
    changed, _ = after(change)
    assert names_of(changed.value["lines"]) == left
    assert {**changed.value, "lines": []} == {**ORDER, "lines": []}


def test_what_is_typed_into_an_item_goes_where_it_is_moved() -> None:
    changed, _ = after("/lines/2:up", "/lines/2:up", lines__2__sku="typed")
    assert names_of(changed.value["lines"]) == ["typed", "a", "b"]
    rows = next(node for node in changed.nodes if isinstance(node, ItemRows) and node.path == "/lines")
    assert [row.moved for row in rows.rows] == [True, False, False]
    assert changed.touched == {"args.o!order/lines": "/2/0/1", "args.o/lines/2/sku": "typed"}


def test_a_new_item_takes_what_is_typed_and_its_faults_are_told_by_where_it_stands() -> None:
    changed, posted = after("/lines:add", "/lines/0:remove", **{"lines__~new1__sku": "d", "lines__~new1__count": "4"})
    assert changed.value["lines"][-1] == {"sku": "d", "count": 4}
    told = form(posted, errors={"/lines/2/count": "Too many."})
    (wrong,) = [each for each in told.fields if each.error]
    assert (wrong.name, wrong.pointer) == ("args.o/lines/~new1/count", "/lines/2/count")


@pytest.mark.parametrize("order", ["/²/0", f"/{'9' * 5000}/0"], ids=["a digit that is none in JSON", "no index"])
def test_an_order_of_junk_breaks_no_button(order: str) -> None:
    """A number that Python alone reads, or refuses for its length, ended the request with an error."""
    form = applied({"args.x!order/lines": order}, "args.x/lines/1:restore")
    assert names.ids_of(form["args.x!order/lines"])[-1] == "1"


def test_a_list_in_an_item_in_a_list_is_changed_too_and_an_empty_item_is_told_of_at_its_place() -> None:
    changed, _ = after("/lines/0/tags:add", "/dates:add", **{"lines__0__tags__~new1": "y"})
    assert changed.value["lines"][0]["tags"] == ["x", "y"]
    assert changed.value["lines"][1] is ORDER["lines"][1]
    assert (changed.value["dates"], changed.errors) == ([], {"/dates/0": "This cannot be left empty."})


def test_an_entry_is_added_by_its_name_and_one_is_removed() -> None:
    changed, posted = after("/prices:add", "/prices/EUR:remove", **{"prices__~new1": "9.50"})
    assert changed.errors == {"/prices/~0new1": "Name this entry."}
    named = {**posted, "args.o!key/prices/~new1": "US/D"}
    assert form(named).value["prices"] == {"a/b~c": "2.00", "US/D": "9.50"}
    twice = {**posted, "args.o!key/prices/~new1": "a/b~c"}
    assert form(twice).errors == {"/prices/a~1b~0c": "This name is there already."}
    assert form(twice).value["prices"] == {"a/b~c": "2.00"}


def test_another_branch_shows_its_fields_and_keeps_what_both_have() -> None:
    posted = as_posted(form()) | {"args.o!branch/payment": "bybank", "args.o/payment/amount": "7.00"}
    changed = form(posted)
    assert changed.value["payment"] == {"kind": "bank", "amount": "7.00"}
    assert "args.o/payment/iban" in {each.name for each in changed.fields}
    assert "args.o/payment/number" not in {each.name for each in changed.fields}
    back = {**as_posted(changed), "args.o!branch/payment": "bycard"}
    assert form(back).value["payment"] == {**ORDER["payment"], "amount": "7.00"}


def test_what_may_be_none_is_given_a_value_and_a_union_takes_the_branch_that_was_chosen() -> None:
    posted = as_posted(form()) | {"args.o!branch/gift": "value"}
    assert form(posted).value["gift"] == {}
    filled = form({**posted, "args.o/gift/sku": "g", "args.o/gift/count": "1"})
    assert filled.value["gift"] == {"sku": "g", "count": 1}
    gone = build(SCHEMA, filled.value, prefix="args.o", posted={"args.o!branch/gift": "none"})
    assert gone.value["gift"] is None
    posted = as_posted(form())
    assert form({**posted, "args.o!branch/either": "text", "args.o/either": "12"}).value["either"] == "12"
    assert form({**posted, "args.o/either": "12"}).value["either"] == 12
    assert form({**posted, "args.o!branch/either": "none"}).value["either"] is None


def test_every_fault_of_the_models_own_validator_is_shown_somewhere() -> None:
    wrong = {
        **ORDER,
        "lines": [{"sku": "a", "count": 0}, {"count": 2}],
        "payment": {"kind": "card", "amount": "x"},
        "prices": {"EUR": "much"},
        "mixed": [{"sku": 1, "count": 1}],
        "pair": [1],
    }
    with pytest.raises(ValidationError) as refused:
        Order.model_validate(wrong)
    places = ["/" + "/".join(str(each) for each in fault["loc"]) for fault in refused.value.errors()]
    told = {place: f"fault {at}" for at, place in enumerate(places) if place != "/mixed/0/int"}  # not the chosen branch
    shown = " ".join(node.error for node in build(SCHEMA, wrong, errors=told).nodes)
    assert len(told) > 6
    assert [said for said in told.values() if said not in shown] == []


commands = st.lists(
    st.tuples(st.sampled_from(["remove", "up", "down", "add", "restore"]), st.integers(0, 5)), max_size=12
)


@calm
@given(st.lists(st.sampled_from("abcdef"), max_size=6), commands)
def test_any_row_of_changes_does_to_the_list_what_it_says(items: list[str], changes: list[tuple[str, int]]) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    model: list[tuple[str, str]] = [(str(at), each) for at, each in enumerate(items)]
    posted = as_posted(build(schema, items, prefix="p"))
    for verb, at in changes:
        if verb == "add":
            new = max((int(each.removeprefix("~new")) for each, _ in model if each.startswith("~")), default=0) + 1
            model.append((f"~new{new}", ""))
            posted = applied(posted, "p:add")
        elif verb == "restore":
            posted = applied(posted, f"p/{at}:restore")
            if at < len(items) and str(at) not in [each for each, _ in model]:
                before = [n for n, (each, _) in enumerate(model) if each.isdigit() and int(each) < at]
                model.insert(before[-1] + 1 if before else 0, (str(at), items[at]))
        elif at < len(model):
            item = model[at]
            posted = applied(posted, f"p/{item[0]}:{verb}")
            to = {"up": at - 1, "down": at + 1, "remove": at}[verb]
            model.remove(item)
            if verb != "remove":
                model.insert(min(max(to, 0), len(model)), item)
        posted = as_posted(build(schema, items, prefix="p", posted=posted))
    assert build(schema, items, prefix="p", posted=posted).value == [text for _, text in model]


def test_a_thousand_items_are_paged_and_what_is_typed_on_one_page_is_carried_to_the_next() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    many = list(range(1000))
    first = build(schema, many, prefix="p")
    assert len(first.fields) <= 40
    posted = as_posted(first) | {"p/3": "33"}
    second = build(schema, many, prefix="p", posted=applied(posted, "p:page.2"))
    assert "p/3" not in {each.name for each in second.fields if each.place.shown}
    (rows,) = [node for node in second.nodes if isinstance(node, ItemRows)]
    assert rows.carried == [("p/3", "33")]
    assert build(schema, many, prefix="p", posted=as_posted(second)).value == [0, 1, 2, 33, *many[4:]]


def test_what_is_too_much_to_draw_is_closed_and_can_be_opened() -> None:
    line = {"type": "object", "properties": {f"m{at}": {"type": "integer"} for at in range(30)}}
    schema = {"type": "array", "items": line}
    value = [{f"m{at}": at for at in range(30)} for _ in range(40)]
    shown = build(schema, value, prefix="p")
    closed = [node for node in shown.nodes if isinstance(node, ClosedNode)]
    assert closed
    assert len(shown.fields) < 400
    last = f"p{closed[-1].path}"
    opened = build(schema, value, prefix="p", posted=applied(as_posted(shown), f"{last}:open"))
    assert f"{last}/m0" in {each.name for each in opened.fields}


def test_no_more_is_added_at_once_than_is_read() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    new = [f"~new{n}" for n in range(1, 20_001)]
    form = build(schema, {"a": 1}, prefix="p", posted={"p!order": names.order_of(["0", *new])})
    assert form.root.error == form.errors[""] == "20,000 were added; add at most 500 at once."
    assert isinstance(form.root, ItemRows)
    assert len(form.root.children) <= 501
    few = build(schema, {"a": 1}, prefix="p", posted={"p!order": names.order_of(["0", *new[:500]])})
    assert "" not in few.errors


def test_a_name_that_goes_too_deep_is_no_field_and_is_not_taken_apart() -> None:
    """Each place on its way was remembered: a name of two million slashes ended the web process."""
    deep = "p" + "/x" * 5_000
    sent = SentFields.from_posted({deep: "1", "p/a": "2"}, "p")
    assert sent.places == {"", "/a"}
    assert sent.texts == {"p/a": "2"}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert build(schema, {"a": "1"}, prefix="p", posted={deep: "1", "p/a": "2"}).value == {"a": "2"}


def test_an_object_that_is_not_there_is_told_of_beside_the_fields_that_it_needs() -> None:
    """The fault stood at the object, which is no field: it led nowhere."""
    text = {"type": "string", "title": "Text"}
    money = {"type": "object", "properties": {"amount": text, "note": text}, "required": ["amount"]}
    proposal = {"type": "object", "properties": {"reply": text, "money": money}, "required": ["reply", "money"]}
    schema = {"type": "object", "properties": {"proposal": proposal}, "required": ["proposal"]}
    untouched = {"p/proposal/reply": "", "p/proposal/money/amount": "", "p/proposal/money/note": ""}
    told = build(schema, {}, prefix="p", posted=untouched, errors={"/proposal": "This is needed."})
    assert {node.pointer for node in told.nodes if node.error} == {"/proposal/reply", "/proposal/money/amount"}
    begun = untouched | {"p/proposal/reply": "Dear Marit"}
    told = build(schema, {}, prefix="p", posted=begun, errors={"/proposal": "They contradict each other."})
    assert {node.pointer for node in told.nodes if node.error} == {"/proposal"}


MERGED: dict[str, Any] = {
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
        return build(schema or MERGED, value, prefix="args.x", posted=texts)

    posted = {f"args.x{place}": text for place, text in typed.items()}
    open_ones = {f"args.x{place}": text for place, text in (known or {}).items()}
    return merging.merged(
        drawn(OLD if old is None else old, posted), None if new is None else lambda t: drawn(new, t), open_ones
    )


@pytest.mark.parametrize(
    ("typed", "changed", "texts", "conflicts"),
    [
        ({"/to": "bob"}, {"amount": 9}, {"/to": "bob"}, {}),
        ({"/to": "bob"}, {"to": "bob"}, {}, {}),
        ({"/to": "bob"}, {"to": "eve"}, {"/to": "bob"}, {"/to": "bob"}),
        ({"/amount": "nine"}, {"amount": 9}, {"/amount": "nine"}, {"/amount": "nine"}),  # though it cannot be read
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


def test_what_was_typed_into_an_item_that_is_gone_is_no_conflict_of_the_one_in_its_place() -> None:
    """Choosing "Yours" put the text for the item that others took out into the item that has its number now."""
    typed = {"/lines/0/count": "5", "/lines/1/sku": "z"}
    for left in ([C], [], [C, D, A]):
        new = {**OLD, "lines": left}
        made = merge(typed, new, {**OLD, "lines": [A, B, C]})
        drawn = merging.rendered(build(MERGED, new, prefix="args.x"))
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
    form = build(MERGED, old, prefix="args.x", posted={f"args.x{place}": text for place, text in typed.items()})
    made = merge(typed, new if stands else None, old)
    for name, text in form.touched.items():
        kept = [*made.texts.values(), *made.conflicts.values()]
        added = [line for line in text.split("\n") if line not in merging.rendered(form)[name].split("\n")]
        there = text in kept or (name.endswith("/text") and all(any(line in each for each in kept) for line in added))
        now = merging.rendered(build(MERGED, new, prefix="args.x")) if stands else {}
        assert there or now.get(name) == text, (name, text, made)


@pytest.mark.parametrize(
    ("mine", "theirs", "merged", "opposed"),
    [
        ({"a": 2, "b": {"c": 1}}, {"a": 1, "b": {"c": 3}}, {"a": 2, "b": {"c": 3}}, []),
        ({"a": 2, "b": {"c": 1}}, {"a": 3, "b": {"c": 1}}, {"a": 2, "b": {"c": 1}}, ["/a"]),
        ({"b": {"c": 1}}, {"a": 9, "b": {"c": 1}}, {"b": {"c": 1}}, ["/a"]),
    ],
)
def test_values_of_both(mine: Any, theirs: Any, merged: Any, opposed: list[str]) -> None:
    assert merging.values({"a": 1, "b": {"c": 1}}, mine, theirs) == (merged, opposed)


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
        ("abcd", "aXcd", "abYd", ["a", "Xc|bY", "d"]),  # nothing unchanged parts them
        ("", "X", "Y", ["X|Y"]),
    ],
)
def test_changes_apart_are_both_kept_and_changes_of_one_place_oppose_each_other(
    base: str, mine: str, theirs: str, after: list[str]
) -> None:
    assert merged_stretches(base, mine, theirs) == after
