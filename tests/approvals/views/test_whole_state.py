"""The whole state as JSON on a gate's page: offered where the policy allows it, and nothing typed is lost."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.forms import EDITABLE
from approvals.models import Gate
from checkpoints.values import patch
from tests.factories import ann, bob, decide, edit_amount, make_gate, make_policy, make_run, make_state, make_team
from tests.harness.signed_in_clients import form_of, post, signed_in


def make_open(*, quorum: int = 1, allowed: bool = True, **fields: Any) -> Gate:
    team = make_team()
    run = make_run(team=team, state=make_state(**fields))
    return make_gate(run=run, policy=make_policy(team, quorum=quorum, whole_state=allowed))


def text(gate: Gate, **changes: Any) -> str:
    return json.dumps({**gate.saved.state, **changes})


def fresh(gate: Gate) -> Gate:
    return Gate.objects.get(pk=gate.pk)


def page_of(gate: Gate, reader: User) -> str:
    return signed_in(reader).get(f"/gates/{gate.pk}/").content.decode()


def typed_in(page: str) -> dict[str, Any]:
    """The state that stands in the text area."""
    found = re.search(r'<textarea[^>]* id="whole-state"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert found is not None
    state: dict[str, Any] = json.loads(html.unescape(found[1]))
    return state


def test_it_is_offered_where_the_policy_allows_it_and_nowhere_else() -> None:
    offered, not_offered = make_open(), make_open(allowed=False)
    assert 'name="state"' in page_of(offered, ann(offered.team))
    assert 'name="state"' not in page_of(not_offered, ann(not_offered.team))


def test_a_state_that_is_too_large_is_not_offered_and_the_page_says_so() -> None:
    gate = make_open(order={"text": "x" * EDITABLE})
    page = page_of(gate, ann(gate.team))
    assert 'name="state"' not in page
    assert "too large to edit on a page" in page


def test_an_edit_of_it_is_taken_and_shown_as_a_difference() -> None:
    gate = make_open(quorum=2)
    answer = post(ann(gate.team), gate, form_of(gate, "edit", state=text(gate, order={"number": "A-2"})))
    assert answer.status_code == 303
    page = page_of(gate, bob(gate.team))
    assert "Also edited in the state" in page
    assert "“Pay” reads order" in page
    assert fresh(gate).standing().state_patch == [{"op": "replace", "path": "/order/number", "value": "A-2"}]


def test_where_the_policy_does_not_allow_it_a_posted_one_is_refused() -> None:
    gate = make_open(allowed=False)
    answer = post(ann(gate.team), gate, form_of(gate, "edit", state=text(gate, order={"number": "A-2"})))
    assert answer.status_code == 422
    assert "does not let the state be edited as a whole" in answer.content.decode()
    assert fresh(gate).proposal == 1


def test_the_text_that_comes_back_as_it_was_is_no_edit() -> None:
    gate = make_open()
    same = json.dumps(gate.saved.state, indent=2, ensure_ascii=False).replace("\n", "\r\n")
    assert post(ann(gate.team), gate, form_of(gate, state=same)).status_code == 303
    assert fresh(gate).outcome.kind == "approved"


def test_approving_beside_it_is_refused_and_keeps_what_was_typed() -> None:
    gate = make_open()
    answer = post(ann(gate.team), gate, form_of(gate, state=text(gate, order={"number": "A-2"})))
    assert answer.status_code == 422
    assert "&quot;A-2&quot;" in answer.content.decode()
    assert fresh(gate).status == "open"


@pytest.mark.parametrize("junk", ["{", '{"order": {}, "order": {}}', '{"order": NaN}', "[]", ""])
def test_what_is_no_state_is_refused_and_kept(junk: str) -> None:
    gate = make_open()
    answer = post(ann(gate.team), gate, form_of(gate, "edit", state=junk) | {"comment": "my words"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="whole-errors"' in page
    assert "Write " in page
    assert "my words" in page
    assert fresh(gate).status == "open"


def test_a_fault_is_named_by_its_place_beside_what_was_typed() -> None:
    gate = make_open()
    answer = post(ann(gate.team), gate, form_of(gate, "edit", state=text(gate, mailed="perhaps")))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "<code><bdi>/mailed</bdi></code>" in page
    assert "perhaps" in page


def test_fields_and_the_whole_state_are_not_sent_together() -> None:
    gate = make_open()
    form = form_of(gate, "edit", state=text(gate, mailed=True), **{"args.refund/amount": "80.00"})
    answer = post(ann(gate.team), gate, form)
    assert answer.status_code == 422
    assert "not both at once" in answer.content.decode()


def test_a_race_with_anothers_edit_keeps_what_was_typed_over_what_stands_now() -> None:
    gate = make_open(quorum=3)
    form = form_of(gate, "edit", state=text(gate, order={"number": "A-2"}))
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    reader = ann(gate.team)
    answer = post(reader, gate, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert typed_in(page)["order"] == {"number": "A-2"}
    assert typed_in(page)["proposal"]["amount"] == "80.00"  # not put back to what the reader had on the screen
    again = text(gate, order={"number": "A-2"}, proposal={**gate.saved.state["proposal"], "amount": "80.00"})
    assert post(reader, gate, form_of(gate, "edit", state=again)).status_code == 303
    state = patch.apply(fresh(gate).standing().state_patch, gate.saved.state)
    assert (state["order"], state["proposal"]["amount"]) == ({"number": "A-2"}, "80.00")


def test_whoever_was_slower_keeps_the_edit_as_a_difference() -> None:
    gate = make_open()
    form = form_of(gate, "edit", state=text(gate, order={"number": "A-2"}))
    decide(gate, bob(gate.team))
    answer = post(ann(gate.team), gate, form)
    assert answer.status_code == 409
    assert "A-2" in answer.content.decode()
    assert fresh(gate).outcome.kind == "approved"


def test_a_draft_keeps_it_and_is_read_over_what_stands_now() -> None:
    gate = make_open(quorum=3)
    reader = ann(gate.team)
    form = form_of(gate, "edit", state=text(gate, order={"number": "A-2"}))
    signed_in(reader).post(f"/gates/{gate.pk}/drafts/", form)
    assert "&quot;A-2&quot;" in page_of(gate, reader)
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    found = typed_in(page_of(gate, reader))
    assert (found["order"], found["proposal"]["amount"]) == ({"number": "A-2"}, "80.00")


def test_what_it_would_do_is_foretold_while_it_is_typed() -> None:
    gate = make_open()
    reader = signed_in(ann(gate.team))

    def told(**changes: Any) -> str:
        form = form_of(gate, "edit", state=text(gate, **changes))
        answer = reader.post(f"/gates/{gate.pk}/impacts/", form, headers={"HX-Request": "true"})
        assert answer.status_code == 200
        return str(answer.content.decode())

    assert 'id="my-whole"' in (shown := told(order={"number": "A-2"}))
    assert "Your edit" in shown.split('id="my-whole"')[1].split("</div>")[0]
    assert "1 field to correct" in told(mailed="perhaps")
    assert fresh(gate).proposal == 1
