"""The order's lists and branches on the gate's page: changed by the buttons' posts, decided by the form."""

from __future__ import annotations

import re
from typing import Any

from approvals.models import Decision, Gate
from tests.factories import ann, decide
from tests.factories.driven_runs import open_gate
from tests.harness.signed_in_clients import form_of, post, signed_in

from .restock_runs import make_restock

INPUT = re.compile(r'<(?:input|textarea|select)\b[^>]*?\bname="([^"]+)"[^>]*>')


def gate_of_restock() -> Gate:
    return open_gate(make_restock())


def changed(gate: Gate, change: str, form: dict[str, str], **headers: str) -> Any:
    """Press a button of the form."""
    client = signed_in(ann(gate.team))
    return client.post(f"/gates/{gate.pk}/forms/", {**form, "change": change}, headers=headers)


def arguments(gate: Gate, action_id: str = "order") -> dict[str, Any]:
    found = Gate.objects.get(pk=gate.pk).standing().card.action(action_id)
    assert found is not None
    answer: dict[str, Any] = found.arguments
    return answer


def order_of(gate: Gate) -> dict[str, str]:
    """The mark that the page posts for the order's lines."""
    return {"args.order!order/lines": "".join(f"/{at}" for at in range(len(arguments(gate)["lines"])))}


def test_a_button_draws_the_whole_page_anew_with_all_that_was_typed_and_decides_nothing() -> None:
    gate = gate_of_restock()
    typed = {"args.order/lines/0/quantity": "50", "args.message/subject": "Soon", "comment": "my words"}
    answer = changed(gate, "args.order/lines:add", form_of(gate, "", **order_of(gate), **typed))
    page = answer.content.decode()
    assert answer.status_code == 200
    assert 'name="args.order/lines/~new1/sku"' in page
    assert 'value="50"' in page
    assert 'value="Soon"' in page
    assert "my words" in page
    assert re.search(r'name="verdict\.order" value="edit"[^>]* checked', page)
    assert not Decision.objects.filter(gate=gate).exists()


def test_with_script_the_one_form_alone_comes_back() -> None:
    gate = gate_of_restock()
    form = form_of(gate, "", **order_of(gate), **{"args.order/lines/0/quantity": "50"})
    page = changed(gate, "args.order/lines/1:up", form, **{"X-Fragment": "form"}).content.decode()
    assert page.lstrip().startswith('<div class="action-form" id="form-args.order">')
    assert page.count('class="action-form"') == 1
    assert page.index("args.order/lines/1/sku") < page.index("args.order/lines/0/sku")
    assert 'value="50"' in page
    assert "Your edit" in page


def test_a_gate_that_moved_on_says_so_and_keeps_what_was_typed() -> None:
    gate = gate_of_restock()
    form = form_of(gate, "", **order_of(gate), **{"args.order/lines/0/quantity": "50"})
    decide(gate, ann(gate.team), "reject", then="stop")
    answer = changed(gate, "args.order/lines:add", form)
    assert answer.status_code == 409


def test_lines_that_were_moved_taken_out_and_added_are_what_runs() -> None:
    gate = gate_of_restock()
    before = arguments(gate)["lines"]
    new = {"sku": before[0]["sku"], "quantity": "7", "price": "6.40"}
    form = {f"args.order/lines/~new1/{name}": text for name, text in new.items()} | {
        "args.order!order/lines": "/2/1/~new1",
        "args.order/lines/~new1/needed_by": "2026-03-06T08:15",
        "args.order!zone/lines/~new1/needed_by": "+01:00",
        "args.order/lines/~new1/note": "",
    }
    assert post(ann(gate.team), gate, form_of(gate, "edit", **form)).status_code == 303
    after = arguments(gate)["lines"]
    assert after[:2] == [before[2], before[1]]
    assert after[2] == {**new, "quantity": 7, "needed_by": "2026-03-06T08:15:00+01:00", "note": None}


def test_another_delivery_is_chosen_and_its_faults_stand_at_its_fields() -> None:
    gate = gate_of_restock()
    form = {"args.order!branch/delivery": "courier", "args.order/delivery/address/street": "Kai 4"}
    page = post(ann(gate.team), gate, form_of(gate, "edit", **form)).content.decode()
    wrong = [name for name in INPUT.findall(page) if f'name="{name}"' in page and invalid(page, name)]
    assert wrong == ["args.order/delivery/address/postcode", "args.order/delivery/address/city"]
    form |= {"args.order/delivery/address/postcode": "20359", "args.order/delivery/address/city": "Hamburg"}
    assert post(ann(gate.team), gate, form_of(gate, "edit", **form)).status_code == 303
    address = {"street": "Kai 4", "postcode": "20359", "city": "Hamburg"}
    assert arguments(gate)["delivery"] == {"kind": "courier", "address": address, "insured": True}


def invalid(page: str, name: str) -> bool:
    found = re.search(rf'<[^>]*\bname="{re.escape(name)}"[^>]*>', page)
    return bool(found and 'aria-invalid="true"' in found.group())


def test_every_fault_is_at_its_field_wherever_the_item_was_moved() -> None:
    gate = gate_of_restock()
    form = {
        "args.order!order/lines": "/2/1/0",
        "args.order/lines/0/quantity": "0",
        "args.order/lines/1/price": "much",
        "args.order/lines/2/sku": "lower",
    }
    page = post(ann(gate.team), gate, form_of(gate, "edit", **form)).content.decode()
    assert invalid(page, "args.order/lines/1/price")
    form["args.order/lines/1/price"] = "1.00"
    page = post(ann(gate.team), gate, form_of(gate, "edit", **form)).content.decode()
    assert [name for name in INPUT.findall(page) if invalid(page, name)] == [
        "args.order/lines/2/sku",
        "args.order/lines/0/quantity",
    ]
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_a_time_that_the_browser_sends_back_without_its_seconds_is_no_edit() -> None:
    gate = gate_of_restock()
    line = arguments(gate)["lines"][0]["needed_by"]
    form = {"args.order/lines/0/needed_by": line[:16], "args.order!zone/lines/0/needed_by": line[19:]}
    assert post(ann(gate.team), gate, form_of(gate, "approve", **form)).status_code == 303
