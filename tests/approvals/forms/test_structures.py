"""Lists, entries, unions and what may be none: added, removed, moved and switched by what buttons post."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from django.template.loader import render_to_string
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from agents.definition.fields import StateSchema
from approvals.forms import ClosedNode, Form, ItemRows, ShapeChoice, applied, build, names
from approvals.forms.builder import SentFields
from tests.approvals.forms.posted_forms import as_posted
from tests.harness.examples import many


class ByCard(BaseModel):
    """One way to pay."""

    kind: Literal["card"] = "card"
    number: str
    amount: Decimal


class ByBank(BaseModel):
    """Another."""

    kind: Literal["bank"] = "bank"
    iban: str
    amount: Decimal


class Line(BaseModel):
    """One of many."""

    sku: str
    count: int = Field(gt=0)
    tags: list[str] = []
    lines: list[Line] = []


class Order(BaseModel):
    """All that pydantic nests."""

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


def test_a_form_that_nobody_touched_gives_back_the_very_value() -> None:
    assert form(as_posted(form())).value is ORDER
    assert form(as_posted(form())).touched == {}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("/lines/0:remove", ["b", "c"]),
        ("/lines/2:up", ["a", "c", "b"]),
        ("/lines/0:down", ["b", "a", "c"]),
        ("/lines/0:up", ["a", "b", "c"]),
        ("/lines:add", ["a", "b", "c", None]),
        ("/lines/7:remove", ["a", "b", "c"]),
        ("/nowhere/7:remove", ["a", "b", "c"]),
        ("/lines/0:fly", ["a", "b", "c"]),
        (":", ["a", "b", "c"]),
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


def test_an_item_that_was_removed_can_be_put_back_with_what_it_held() -> None:
    changed, _ = after("/lines/1:remove")
    rows = next(node for node in changed.nodes if isinstance(node, ItemRows) and node.path == "/lines")
    assert [name for name, _ in rows.removed] == ["args.o/lines/1"]
    assert form(applied(as_posted(changed), "args.o/lines/1:restore")).value is ORDER


@pytest.mark.parametrize("order", ["/²/0", f"/{'9' * 5000}/0"], ids=["a digit that is none in JSON", "no index"])
def test_an_order_of_junk_breaks_no_button(order: str) -> None:
    """A number that Python alone reads, or refuses for its length, ended the request with an error."""
    form = applied({"args.x!order/lines": order}, "args.x/lines/1:restore")
    assert names.ids_of(form["args.x!order/lines"])[-1] == "1"


def test_a_new_item_that_was_removed_leaves_nothing_to_the_next_new_one() -> None:
    _, posted = after("/lines:add", **{"lines__~new1__sku": "old"})
    posted = applied(applied(posted, "args.o/lines/~new1:remove"), "args.o/lines:add")
    assert form(posted).value["lines"][-1] == {}


def test_a_list_in_an_item_in_a_list_is_changed_too() -> None:
    changed, _ = after("/lines/0/tags:add", **{"lines__0__tags__~new1": "y"})
    assert changed.value["lines"][0]["tags"] == ["x", "y"]
    assert changed.value["lines"][1] is ORDER["lines"][1]


def test_a_new_item_that_cannot_be_left_empty_says_so_at_its_place() -> None:
    changed, _ = after("/dates:add")
    assert changed.value["dates"] == []
    assert changed.errors == {"/dates/0": "This cannot be left empty."}


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


def test_what_may_be_none_is_given_a_value_and_taken_away_again() -> None:
    posted = as_posted(form()) | {"args.o!branch/gift": "value"}
    assert form(posted).value["gift"] == {}
    filled = form({**posted, "args.o/gift/sku": "g", "args.o/gift/count": "1"})
    assert filled.value["gift"] == {"sku": "g", "count": 1}
    gone = build(SCHEMA, filled.value, prefix="args.o", posted={"args.o!branch/gift": "none"})
    assert gone.value["gift"] is None


def test_a_scalar_union_takes_the_branch_that_was_chosen() -> None:
    posted = as_posted(form())
    assert form({**posted, "args.o!branch/either": "text", "args.o/either": "12"}).value["either"] == "12"
    assert form({**posted, "args.o/either": "12"}).value["either"] == 12
    assert form({**posted, "args.o!branch/either": "none"}).value["either"] is None


def test_the_faults_of_a_union_stand_at_the_fields_of_the_chosen_branch() -> None:
    told = form(errors={"/payment/card/number": "Wrong.", "/payment/bank/iban": "Missing."})
    assert {each.pointer: each.error for each in told.fields if each.error} == {"/payment/number": "Wrong."}
    faults = {"/mixed/1/int": "Not a number.", "/mixed/1/Line/count": "Too many."}
    assert {each.pointer: each.error for each in form(errors=faults).fields if each.error} == {
        "/mixed/1/count": "Too many."
    }


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


def test_a_tuple_keeps_its_places_and_a_set_has_no_order() -> None:
    nodes = {node.path: node for node in form().nodes if isinstance(node, ItemRows)}
    assert (nodes["/pair"].grows, nodes["/pair"].moves) == (False, False)
    assert (nodes["/once"].grows, nodes["/once"].moves) == (True, False)
    assert nodes["/prices"].moves is False
    assert form({"args.o!order/pair": "/1"}).value is ORDER


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


@calm
@given(st.dictionaries(st.text(max_size=6), st.integers(), max_size=5))
def test_entries_with_any_names_come_back_as_they_were(value: dict[str, int]) -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert build(schema, value, prefix="p", posted=as_posted(build(schema, value, prefix="p"))).value is value


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


def test_five_hundred_members_are_paged_and_all_can_be_reached() -> None:
    schema = {"type": "object", "properties": {f"m{at}": {"type": "integer"} for at in range(500)}}
    value = {f"m{at}": at for at in range(500)}
    seen: set[str] = set()
    posted: dict[str, str] = {}
    for page in range(1, 14):
        shown = build(schema, value, prefix="p", posted={**posted, "p!page": str(page)})
        assert len([each for each in shown.fields if each.place.shown]) <= 40
        seen |= {each.name for each in shown.fields}
    assert len(seen) == 500


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


def test_the_whole_value_is_not_taken_away_by_its_form() -> None:
    schema = {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "null"}]}
    assert not isinstance(build(schema, {"a": "b"}).root, ShapeChoice)
    assert isinstance(build(schema, None).root, ShapeChoice)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}, [{"n": 1}]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}),
    ],
)
def test_no_more_is_added_at_once_than_is_read(schema: dict[str, Any], value: Any) -> None:
    new = [f"~new{n}" for n in range(1, 20_001)]
    form = build(schema, value, prefix="p", posted={"p!order": names.order_of(["0", *new])})
    assert form.errors[""] == "20,000 were added; add at most 500 at once."
    assert form.root.error == form.errors[""]
    assert isinstance(form.root, ItemRows)
    assert len(form.root.children) <= 501
    few = build(schema, value, prefix="p", posted={"p!order": names.order_of(["0", *new[:500]])})
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


def test_a_list_says_in_words_how_many_items_it_has() -> None:
    """ "Command 3 check first" read as if the third were checked; "Problems 0" stood over "Empty."."""
    schema = {"type": "object", "properties": {"lines": {"type": "array", "items": {"type": "string"}}}}
    said = []
    for values in (["a", "b"], ["a"], []):
        [node] = build(schema, {"lines": values}, prefix="args").root.children
        page = render_to_string("forms/rows.html", {"node": node, "form": "decision", "change_url": "/x/"})
        said.append(" ".join(re.sub("<[^>]*>", " ", page.partition("</legend>")[0]).split()))
    assert said == ["Lines 2 items", "Lines 1 item", "Lines"]
