"""The gate's page: who sees it, and that it says what is asked."""

from __future__ import annotations

import re

from django.contrib.auth.models import Group

from approvals.models import Gate
from checkpoints.models import Checkpoint
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    eve,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_state,
    make_team,
    make_user,
    mira,
)
from tests.harness.signed_in_clients import form_of, post, signed_in


def test_a_gates_page_says_what_is_asked_and_what_a_yes_does() -> None:
    team = make_team()
    gate = make_gate(team=team, card=make_card(risk="high", reasons=["Amount over 100"]))
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Refund €120.00 to Marit" in page
    assert "Amount over 100" in page
    assert "Approve: pay €120.00, reply" in page
    assert "Check first: <bdi>Amount</bdi>" in page
    assert 'name="args.refund/amount"' in page
    assert "If you send it back to" in page


def test_a_page_is_kept_by_no_cache_and_runs_nothing_inline() -> None:
    team = make_team()
    gate = make_gate(team=team)
    client = signed_in(ann(team))
    for address in (
        "/",
        "/inbox/list/",
        f"/gates/{gate.pk}/",
        f"/gates/{gate.pk}/status/",
        f"/gates/{gate.pk}/preview/",
    ):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert "no-store" in answer["Cache-Control"], address
        policy = answer["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        page = answer.content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", page), address


def test_an_outsider_is_told_that_there_is_no_such_gate() -> None:
    gate = make_gate()
    answer = signed_in(eve()).get(f"/gates/{gate.pk}/")
    assert answer.status_code == 404
    assert gate.title not in answer.content.decode()


def test_somebody_without_a_session_is_asked_to_sign_in() -> None:
    from django.test import Client

    gate = make_gate()
    answer = Client().get(f"/gates/{gate.pk}/")
    assert answer.status_code == 302
    assert answer["Location"] == f"/accounts/login/?next=/gates/{gate.pk}/"


def test_a_reviewer_from_elsewhere_sees_the_gate_and_no_run() -> None:
    team, finance = make_team(), make_team("Finance", may=("approvals.decide_gate",))
    policy = make_policy(team, groups=(finance,))
    gate = make_gate(policy=policy)
    page = signed_in(mira(finance)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Refund €120.00 to Marit" in page
    assert 'id="decision"' in page
    assert "Steps so far" not in page
    assert f"/runs/{gate.run_id}/" not in page


def test_whoever_may_only_look_sees_why_and_gets_no_form() -> None:
    team = make_team(may=("checkpoints.view_run",))
    gate = make_gate(team=team)
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert 'id="decision"' not in page
    assert "with the permission “decide at the gates of policies that name the team” can decide this." in page
    assert "Ask your administrator, who can give it" in page


def test_markup_from_an_agent_stays_text_everywhere_on_the_page() -> None:
    evil = "<img src=x onerror=alert(1)>\u202e</textarea><script>alert(2)</script>"
    team = make_team()
    run = make_run(
        team=team, state=make_state(order={evil: evil}, proposal={"amount": "1", "currency": evil, "reply": evil})
    )
    action = make_action(title=evil, pinned=["/currency"])
    card = make_card(
        title=evil[:200], summary=evil, for_whom=evil, amount=evil, resource=evil, reasons=[evil], actions=[action]
    )
    gate = make_gate(run=run, card=card)
    client = signed_in(ann(team))
    for address in (
        f"/gates/{gate.pk}/",
        "/",
        f"/gates/{gate.pk}/preview/",
        f"/gates/{gate.pk}/values/?at=/proposal/reply",
    ):
        page = client.get(address).content.decode()
        assert "<img src" not in page, address
        assert "<script>alert" not in page, address
        assert "U+202E" in page, address
        assert "\u202e" not in re.sub(r"<textarea\b.*?</textarea>|<input\b[^>]*>", "", page, flags=re.DOTALL), address


def test_ten_megabytes_in_a_field_make_a_small_page_that_says_so() -> None:
    team = make_team()
    mail = "word " * 2_000_000 + "the end"
    run = make_run(team=team, state=make_state(proposal={"amount": "1", "currency": "EUR", "reply": mail}))
    gate = make_gate(run=run)
    client = signed_in(ann(team))
    page = client.get(f"/gates/{gate.pk}/").content.decode()
    assert len(page) < 400_000
    assert "too long to edit here" in page
    assert "the end" in page
    whole = f"/gates/{gate.pk}/values/?at=/proposal/reply"
    assert whole in page
    last = client.get(f"{whole}&from=9999990").content.decode()
    assert "the end" in last
    assert client.get(f"/gates/{gate.pk}/values/?at=/nowhere").status_code == 404


def test_what_a_text_hides_is_a_reason_to_look_even_if_the_agent_gives_none() -> None:
    team = make_team()
    reply = "Dear Marit" + "\n" * 5001 + "and pay eve\u200b"
    run = make_run(team=team, state=make_state(proposal={"amount": "1", "currency": "EUR", "reply": reply}))
    page = signed_in(ann(team)).get(f"/gates/{make_gate(run=run).pk}/").content.decode()
    assert "A text in proposal, the gate hides what follows behind 5,000 blank lines" in page
    assert "1 character in proposal, the gate cannot be seen" in page


def test_what_undoes_an_action_is_an_agents_word_like_any_other() -> None:
    """It went into the page as it came, the one text of a card that could turn its line around unseen."""
    team = make_team()
    gate = make_gate(team=team, card=make_card(actions=[make_action(undo="a\u202eb")]))
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Can be undone" in page
    assert "\u202e" not in page


def test_a_closed_gate_is_read_only_and_says_how_it_ended() -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team), "reject", then="back", back_to="propose", comment="Only the frames.")
    page = signed_in(make_user("Bob", team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Rejected by Ann Okafor" in page
    assert "The run goes back to “Propose”" in page
    assert "Only the frames." in page
    assert 'id="decision"' not in page


def test_the_status_fragment_says_of_the_talk_beside_it_whether_the_gate_is_open() -> None:
    """Whoever lost a race read "the gate stays open" over the box in which colleagues are asked."""
    team = make_team()
    gate = make_gate(team=team)
    reader = signed_in(ann(team))

    def hint() -> str:
        part = reader.get(f"/gates/{gate.pk}/status/?seen=1").content.decode()
        return part.partition('id="ask-stays">')[2].partition("<")[0]

    assert hint() == "does not close the gate"
    decide(gate, bob(team))
    assert hint() == "the gate is closed"


def test_the_status_fragment_says_that_another_version_stands() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    reader = signed_in(ann(team))
    assert "edited this gate" not in reader.get(f"/gates/{gate.pk}/status/?seen=1").content.decode()
    decide(gate, make_user("Bob Lindqvist", team), "edit", arguments=edit_amount(gate, "7.00"))
    news = reader.get(f"/gates/{gate.pk}/status/?seen=1").content.decode()
    assert "Bob Lindqvist edited this gate while you had it open." in news
    assert "120.00" in news
    assert "7.00" in news
    assert 'id="decision"' not in news, "the form is never morphed"


def test_the_status_of_a_version_that_never_was_is_that_of_the_one_that_stands() -> None:
    """Any other number was taken for an older version, whose editor nobody could name: the server failed."""
    team = make_team()
    gate = make_gate(team=team)
    answer = signed_in(ann(team)).get(f"/gates/{gate.pk}/status/?seen=99")
    assert (answer.status_code, "edited this gate" in answer.content.decode()) == (200, False)


def test_an_edit_that_stands_is_shown_with_who_made_it() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    decide(gate, make_user("Bob Lindqvist", team), "edit", arguments=edit_amount(gate, "7.00"))
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Edited by Bob Lindqvist" in page
    assert Gate.objects.get(pk=gate.pk).proposal == 2
    assert 'value="7.00"' in page


def test_a_state_that_does_not_verify_is_neither_shown_nor_decided_over() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team), ann(team)
    form = form_of(gate)
    stored = Checkpoint.objects.get(pk=gate.checkpoint)
    flipped = bytes(stored.payload[:-1]) + bytes([stored.payload[-1] ^ 1])
    Checkpoint.objects.filter(pk=gate.checkpoint).update(payload=flipped)
    client = signed_in(reviewer)
    for address in (f"/gates/{gate.pk}/", f"/gates/{gate.pk}/values/?at=/order"):
        answer = client.get(address)
        assert answer.status_code == 409
        assert "failed its integrity check" in answer.content.decode()
    assert post(reviewer, gate, form).status_code == 409
    assert Gate.objects.get(pk=gate.pk).status == "open"
    Checkpoint.objects.filter(pk=gate.checkpoint).update(payload=stored.payload)  # other tests verify every run


def test_a_gate_that_cannot_be_decided_here_shows_labelled_values_and_no_inputs() -> None:
    team = make_team(may=("checkpoints.view_run",))
    page = signed_in(ann(team)).get(f"/gates/{make_gate(team=team).pk}/").content.decode()
    sheet = page[page.index('id="action-refund"') :].partition("</section>")[0]
    assert '<span class="label"><bdi>' in sheet
    assert 'class="tree"' not in sheet
    assert "<input" not in sheet


def make_lacking(team: Group) -> Gate:
    """A gate whose card says that the order number is missing."""
    order = {"type": "string", "title": "Order number"}
    schema = {"type": "object", "properties": {"order": order}, "required": ["order"]}
    run = make_run(state=make_state(proposal={"order": ""}), first_step="review", team=team)
    action = make_action(schema=schema, pinned=[], effect="", missing=["/order"])
    return make_gate(run=run, card=make_card(actions=[action]))


def test_a_gate_that_lacks_something_asks_for_it_and_offers_no_approval_of_what_is_known_to_be_wrong() -> None:
    team = make_team()
    gate = make_lacking(team)
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Fill in what is missing: <bdi>Order number</bdi>." in page
    assert 'data-choice="approve"' not in page
    assert 'name="verdict" value="edit" data-hotkey="e" checked' in page
    field = page[page.index('data-field="/order"') :].partition('<p class="error"')[0]
    assert ">Required</span>" in field
    assert 'aria-required="true"' in field


def test_an_approval_of_what_lacks_something_is_refused_at_the_field() -> None:
    team = make_team()
    gate = make_lacking(team)
    answer = post(ann(team), gate, form_of(gate))
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Fill this in: nothing can be approved without it." in page[page.index('data-field="/order"') :]
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_an_effect_that_is_called_with_an_empty_text_lacks_nothing() -> None:
    """Its reviewers were told to fill it in, and that a yes might only ask again."""
    team = make_team()
    schema = {"type": "object", "properties": {"memo": {"type": "string"}}, "required": ["memo"]}
    run = make_run(state=make_state(proposal={"memo": ""}), first_step="review", team=team)
    gate = make_gate(run=run, card=make_card(actions=[make_action(schema=schema, pinned=[])]))
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Fill in what is missing" not in page
    assert 'data-hotkey="e" checked' not in page


def test_a_gate_that_lacks_nothing_preselects_nothing() -> None:
    team = make_team()
    page = signed_in(ann(team)).get(f"/gates/{make_gate(team=team).pk}/").content.decode()
    assert "Fill in what is missing" not in page
    assert not re.search(r'name="verdict" value="[a-z]+" data-hotkey="." checked', page)
