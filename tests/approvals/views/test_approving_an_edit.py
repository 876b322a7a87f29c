"""What is typed and approved is an approval with an edit: in fields, of a part left out, in the whole state."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.cards.card import Card
from approvals.cards.drawing import Drawing
from approvals.forms import EDITABLE
from approvals.models import Draft, Gate, Outcome
from approvals.presentation.decision_form import send_button
from approvals.presentation.text import line_diff
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import patch
from tests.approvals.cards.verdicts.conftest import known_agents, ledger
from tests.approvals.cards.verdicts.verdict_forms import make_three
from tests.approvals.views.test_decisions import fresh, make_two
from tests.approvals.views.test_drafts import keep, page_of
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_state,
    make_team,
)  # fmt: skip
from tests.factories.driven_runs import open_gate
from tests.factories.runs import Proposal
from tests.harness.signed_in_clients import form_of, post, signed_in

__all__ = ["known_agents", "ledger"]
AMOUNT = "args.refund/amount"
STEPS = (
    StepSpec("review", kind="gate", allows=("pay", "reply", "log")),
    StepSpec("pay", kind="effect", title="Pay the refund"),
    StepSpec("reply", kind="effect", title="Reply to the customer"),
    StepSpec("log", kind="effect", title="SMS the owner"),
)
PLAN = PlanSpec("robo", "1", state_schema={}, steps=STEPS)


def card(**amount: Any) -> Card:
    given = {"amount": "5.25", "currency": "GBP", "note": "4417", **amount}
    pay = make_action(id="p", pinned=["/amount", "/note"], arguments=given, schema=Proposal.model_json_schema())
    return make_card(
        amount="", actions=[pay, make_action(id="r", effect="reply", pinned=[])], allows=("pay", "reply", "log")
    )


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ("approve approve", "Approve: pay the refund £5.25, reply to the customer, SMS the owner"),
        ("edit approve", "Approve with edit: pay the refund £5.25, reply to the customer, SMS the owner"),
        ("approve reject", "Approve: pay the refund £5.25, SMS the owner; reject 1"),
        ("respond reject", "Approve: SMS the owner; reject 1; answer 1 instead"),
    ],
)
def test_the_button_says_what_a_mix_does(verdicts: str, words: str) -> None:
    said = dict(zip("pr", verdicts.split(), strict=True))
    assert send_button.deciding(card(), PLAN, said) == words
    assert send_button.deciding(card(), PLAN, {**said, "r": ""}) == "Send these verdicts"


def test_the_button_says_which_approval_it_is_and_an_amount_that_no_action_has_until_it_is_edited() -> None:
    words = send_button.approving(card(amount="7.00"), PLAN, edited=False, votes="2 of 3")
    assert words == "Approve: pay the refund £7.00, reply to the customer, SMS the owner (2 of 3)"
    asked = replace(card(), amount="€759.80")
    assert send_button.approving(asked, PLAN, edited=False).startswith("Approve €759.80: pay the refund £5.25, ")
    assert send_button.approving(asked, PLAN, edited=True).startswith("Approve with edit: pay the refund £5.25, ")
    own = send_button.approving(replace(asked, amount="£5.25"), PLAN, edited=False)
    assert own.startswith("Approve: pay the refund £5.25")


def test_the_words_for_what_is_typed_come_with_the_number_of_its_entry() -> None:
    gate = make_gate(team=make_team())
    form = form_of(gate, "edit", **{AMOUNT: "30.00", "typed": "7"})
    told = signed_in(ann(gate.team)).post(f"/gates/{gate.pk}/impacts/", form, HTTP_HX_REQUEST="true").content.decode()
    assert '<span id="says-edit" data-says="7">Approve with edit: pay €30.00, reply</span>' in told


def test_an_approval_of_changed_fields_offers_both_ways_and_each_works() -> None:
    """It was refused with an advice that the page did not offer."""
    gate = make_gate(team=make_team())
    form = form_of(gate, "approve", **{AMOUNT: "30.00", "comment": "Half"})
    answer = post(ann(gate.team), gate, form)
    page = html.unescape(answer.content.decode())
    assert answer.status_code == 422
    assert "You changed a field but chose Approve. Send your change, or restore the original value." in page
    assert re.search(r'name="instead" value="edit">Approve with edit: pay €30.00, reply<', page)
    assert 'name="instead" value="restore"' in page
    restored = signed_in(ann(gate.team)).post(f"/gates/{gate.pk}/impacts/", {**form, "instead": "restore"})
    page = restored.content.decode()
    assert restored.status_code == 200
    assert 'value="120.00"' in page
    assert "30.00" not in page
    assert "Half" in page
    assert fresh(gate).status == "open"
    assert post(ann(gate.team), gate, {**form, "instead": "edit"}).status_code == 303
    assert fresh(gate).outcome.kind == "edited"
    assert fresh(gate).standing().card.actions[0].arguments["amount"] == "30.00"


@pytest.mark.parametrize("chosen", [{"instead": "edit"}, {"verdict.b": "edit"}])
def test_all_at_once_with_one_of_them_changed_offers_both_ways_too(ledger: Path, chosen: dict[str, str]) -> None:
    gate = open_gate(make_three(ledger))
    form = form_of(gate, "approve", **{"args.b/amount": "20"})
    page = post(ann(gate.team), gate, form).content.decode()
    assert 'name="instead" value="edit">Approve with edit: ' in page
    assert post(ann(gate.team), gate, {**form, **chosen}).status_code == 303
    assert fresh(gate).outcome.by_action == {"a": "approve", "b": "edit", "c": "approve"}


@pytest.mark.parametrize("beside", [{}, {"verdict.refund": "edit", AMOUNT: "30.00", "instead": "edit"}])
def test_all_approved_and_one_rejected_beside_it_is_no_approval(beside: dict[str, str]) -> None:
    """The rejected action was approved with the rest, and its reason was lost."""
    gate = make_two()
    rejected = {"verdict.letter": "reject", "reason.letter": "Not this one."}
    answer = post(ann(gate.team), gate, form_of(gate, "approve", **rejected, **beside))
    assert answer.status_code == 422
    assert "You chose Approve for all actions, and something else for this one." in answer.content.decode()
    assert fresh(gate).status == "open"


OLD = "".join(f"line {number}\n" for number in range(1, 21))
NEW = OLD.replace("line 2\n", "LINE 2\n").replace("line 10\n", "").replace("line 18\n", "line 18\nmore\n")
REPLY = "args.refund/reply"
STATE: dict[str, Any] = {"amount": "120.00", "currency": "EUR", "reply": NEW, "note": None}


def make_texts(*draws: Drawing, quorum: int = 1) -> Gate:
    team = make_team()
    run = make_run(team=team, state=make_state(proposal=STATE))
    policy, card = make_policy(team, quorum=quorum), make_card(actions=[make_action(draws=draws)])
    return make_gate(run=run, policy=policy, card=card)


@pytest.fixture
def gate() -> Gate:
    return make_texts(Drawing(kind="diff", at="/reply", was=OLD))


def ran(gate: Gate) -> dict[str, Any]:
    """The arguments with which the gate's action runs, whose digest the outcome binds."""
    outcome = Outcome.objects.get(gate=gate)
    assert outcome.to_run is not None
    assert bytes(outcome.to_run) == outcome.approved().digest()
    found: dict[str, Any] = json.loads(bytes(outcome.arguments))["refund"]
    return found


def test_each_stretch_has_a_box_and_one_that_is_left_out_stays_as_it_was(gate: Gate) -> None:
    page = page_of(ann(gate.team), gate)
    for number in (1, 2, 3):
        assert f'name="drop.{REPLY}.{number}"' in page
    sent = form_of(gate, "edit", **{f"drop.{REPLY}.2": "yes"})
    assert post(ann(gate.team), gate, sent).status_code == 303
    assert ran(gate)["reply"] == NEW.replace("line 9\n", "line 9\nline 10\n")


def test_a_ticked_box_is_my_own_edit_before_it_is_sent_kept_in_the_draft_and_no_approval(gate: Gate) -> None:
    mine = ann(gate.team)
    box = f"drop.{REPLY}.1"
    sent = form_of(gate, "edit", **{box: "yes"})
    shown = signed_in(mine).post(f"/gates/{gate.pk}/impacts/", sent).content.decode()
    for words in ('data-by="you"', "Your edit", f'name="{box}" value="yes" checked'):
        assert words in shown
    keep(mine, gate, sent)
    assert not Draft.objects.get(gate=gate).empty
    assert f'name="{box}" value="yes" checked' in page_of(mine, gate)
    refused = post(mine, gate, form_of(gate, "approve", **{box: "yes"}))
    assert refused.status_code == 422
    assert "You changed a field but chose Approve." in refused.content.decode()
    sent = form_of(gate, "edit", **{f"drop.{REPLY}.{number}": "yes" for number in (1, 2, 3)})
    assert (post(mine, gate, sent).status_code, ran(gate)["reply"]) == (303, OLD)


def test_what_is_typed_elsewhere_in_the_text_stays_and_over_the_same_lines_is_refused(gate: Gate) -> None:
    mine = ann(gate.team)
    box = {f"drop.{REPLY}.1": "yes"}
    both = post(mine, gate, form_of(gate, "edit", **box, **{REPLY: NEW.replace("LINE 2", "Zeile 2")}))
    assert both.status_code == 422
    assert "also left the same part out" in both.content.decode()
    assert "Zeile 2" in both.content.decode()
    sent = form_of(gate, "edit", **box, **{REPLY: NEW.replace("line 15", "Zeile 15")})
    assert post(mine, gate, sent).status_code == 303
    assert ran(gate)["reply"] == NEW.replace("LINE 2", "line 2").replace("line 15", "Zeile 15")


def test_junk_in_a_box_is_ignored_and_whoever_may_not_decide_has_none(gate: Gate) -> None:
    for junk in ("0", "99", "-1", "x", "1" * 20, ""):
        sent = form_of(gate, "edit", **{f"drop.{REPLY}.{junk}": "yes"})
        assert post(ann(gate.team), gate, sent).status_code == 422
    assert post(ann(gate.team), gate, form_of(gate, "edit", **{"drop.args.gone/x.1": "yes"})).status_code == 422
    decide(gate, ann(gate.team))
    assert "drop." not in page_of(bob(gate.team), gate)


def test_changed_fields_are_drawn_beside_what_is_there_now_and_left_out_one_by_one() -> None:
    now = {**STATE, "amount": "100.00", "reply": OLD}
    gate = make_texts(Drawing(kind="fields", at="", was=json.dumps(now)))
    mine = ann(gate.team)
    page = page_of(mine, gate)
    assert ">Proposed<" in page
    assert f'name="restore.{AMOUNT}" value="100.00"' in page
    assert post(mine, gate, form_of(gate, "edit", **{f"restore.{AMOUNT}": "100.00"})).status_code == 303
    assert ran(gate) == {**STATE, "amount": "100.00"}


def test_a_box_ticked_over_an_earlier_version_is_typed_text_in_the_next() -> None:
    gate = make_texts(Drawing(kind="diff", at="/reply", was=OLD), quorum=2)
    mine = ann(gate.team)
    keep(mine, gate, form_of(gate, "edit", **{f"drop.{REPLY}.1": "yes"}))
    theirs = {"refund": {**STATE, "reply": NEW.replace("line 15", "Zeile 15")}}
    decide(gate, bob(gate.team), "edit", arguments=theirs)
    page = page_of(mine, gate)
    assert "conflicts-title" not in page
    assert f'name="drop.{REPLY}.1" value="yes" checked' not in page
    assert NEW.replace("LINE 2", "line 2").replace("line 15", "Zeile 15") in page


TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=10).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "\n".join(lines) + "\n"])
)


@given(TEXTS, TEXTS, st.sets(st.integers(1, 9)))
def test_nothing_left_out_is_the_new_text_and_all_left_out_the_old(before: str, after: str, dropped: set[int]) -> None:
    numbers = {line.hunk for line in line_diff._all(line_diff.split(before), line_diff.split(after))} - {0}
    assert line_diff.without(before, after, set()) == after
    whole = line_diff.without(before, after, numbers)
    assert line_diff.split(whole) == line_diff.split(before)
    some = line_diff.without(before, after, dropped)
    left = {line.hunk for line in line_diff._all(line_diff.split(some), line_diff.split(after))} - {0}
    assert len(left) <= len(numbers)


def make_open(*, quorum: int = 1, allowed: bool = True, **fields: Any) -> Gate:
    team = make_team()
    run = make_run(team=team, state=make_state(**fields))
    return make_gate(run=run, policy=make_policy(team, quorum=quorum, whole_state=allowed))


def text(gate: Gate, **changes: Any) -> str:
    return json.dumps({**gate.saved.state, **changes})


def typed_in(page: str) -> dict[str, Any]:
    found = re.search(r'<textarea[^>]* id="whole-state"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert found is not None
    state: dict[str, Any] = json.loads(html.unescape(found[1]))
    return state


def test_it_is_offered_and_taken_where_the_policy_allows_it_and_it_is_not_too_large() -> None:
    offered, not_offered, large = make_open(), make_open(allowed=False), make_open(order={"text": "x" * EDITABLE})
    assert 'name="state"' in page_of(ann(offered.team), offered)
    assert 'name="state"' not in page_of(ann(not_offered.team), not_offered)
    page = page_of(ann(large.team), large)
    assert 'name="state"' not in page
    assert "too large to edit on a page" in page
    form = form_of(not_offered, "edit", state=text(not_offered, order={"number": "A-2"}))
    answer = post(ann(not_offered.team), not_offered, form)
    assert (answer.status_code, fresh(not_offered).proposal) == (422, 1)
    assert "does not let the state be edited as a whole" in answer.content.decode()


def test_an_edit_of_it_is_taken_and_shown_as_a_difference_and_what_comes_back_as_it_was_is_none() -> None:
    gate = make_open(quorum=2)
    answer = post(ann(gate.team), gate, form_of(gate, "edit", state=text(gate, order={"number": "A-2"})))
    assert answer.status_code == 303
    page = page_of(bob(gate.team), gate)
    assert "Also edited in the state" in page
    assert "“Pay” reads order" in page
    assert fresh(gate).standing().state_patch == [{"op": "replace", "path": "/order/number", "value": "A-2"}]
    gate = make_open()
    same = json.dumps(gate.saved.state, indent=2, ensure_ascii=False).replace("\n", "\r\n")
    assert post(ann(gate.team), gate, form_of(gate, state=same)).status_code == 303
    assert fresh(gate).outcome.kind == "approved"


@pytest.mark.parametrize(
    ("verdict", "said", "shown"),
    [
        ("edit", {"state": '{"order": {}, "order": {}}'}, 'id="whole-errors"'),
        ("edit", {"state": "[]"}, "Write "),
        ("edit", {"mailed": "perhaps"}, "<code><bdi>/mailed</bdi></code>"),
        ("edit", {"mailed": True, "args.refund/amount": "80.00"}, "not both at once"),
        ("approve", {"order": {"number": "A-2"}}, "&quot;A-2&quot;"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place_and_kept(verdict: str, said: dict[str, Any], shown: str) -> None:
    gate = make_open()
    fields = {name: said[name] for name in said if name in ("state", "args.refund/amount")}
    state = text(gate, **{name: said[name] for name in said if name not in fields})
    answer = post(ann(gate.team), gate, form_of(gate, verdict, **{"state": state, **fields}) | {"comment": "my words"})
    assert (answer.status_code, fresh(gate).status) == (422, "open")
    page = answer.content.decode()
    assert shown in page
    assert "my words" in page


def test_a_race_with_anothers_edit_keeps_what_was_typed_over_what_stands_now() -> None:
    gate = make_open(quorum=3)
    form = form_of(gate, "edit", state=text(gate, order={"number": "A-2"}))
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    reader = ann(gate.team)
    answer = post(reader, gate, form)
    page = answer.content.decode()
    assert (answer.status_code, typed_in(page)["order"]) == (409, {"number": "A-2"})
    assert typed_in(page)["proposal"]["amount"] == "80.00"  # not put back to what the reader had on the screen
    again = text(gate, order={"number": "A-2"}, proposal={**gate.saved.state["proposal"], "amount": "80.00"})
    assert post(reader, gate, form_of(gate, "edit", state=again)).status_code == 303
    state = patch.apply(fresh(gate).standing().state_patch, gate.saved.state)
    assert (state["order"], state["proposal"]["amount"]) == ({"number": "A-2"}, "80.00")


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
