"""Takes a decision by one POST, answered by the gate's page with the decision, or with why it was not recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from approvals import errors
from approvals.consequences.errors import ConsequencesChanged, RepeatNotConfirmed
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.decisions.undo_window import take_back
from approvals.models import Draft, Proposal
from approvals.models.draft import MOST_CHARACTERS, NotKept
from approvals.policy import step_up
from approvals.presentation.decision_form import posted, typed_edits, whole_state
from approvals.presentation.decision_form.actions import changes_between
from approvals.presentation.decision_form.posted import PostedDecision
from approvals.presentation.decision_form.verdict_choice import UNSENT
from approvals.presentation.gate_facts.outcomes import DONE
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.presentation.gate_page.filled import carry, fill, pick_fields
from approvals.presentation.gate_page.page import GatePage
from checkpoints.postgresql.sql import make_storable

from .access import gate_post, number_in, page_or_404, private, reader_of, reading_or_404, verified
from .gates import new_key, redirect_after, show
from .unsent import fill_in, form_with_files, preview_edit, proposal_of

NOT_SENT = "Your decision was not sent."
TITLES = {
    "not_allowed": "You may not decide this.",
    "stale": "The gate changed, so your decision was not sent.",
    "already_said": "This vote was given already.",
    "invalid": "Not sent.",
    "edit_refused": "Not sent.",
    "second_look": "Look once more.",
    "too_late": "Too late to undo.",
    "nothing_to_undo": "There is nothing to undo.",
    "no_undo": "This gate has no undo.",
}  # any other refusal: NOT_SENT


@require_POST
@never_cache
def create(request: HttpRequest, gate_id: int) -> HttpResponseBase:
    """Take a decision. Somebody whose session ended comes back to the gate, where their draft is kept."""
    if not request.user.is_authenticated:
        return redirect_to_login(reverse("gate", args=[gate_id]))
    return decide(request, gate_id)


@private
@verified
def decide(request: HttpRequest, gate_id: int) -> HttpResponse:
    user, key = reader_of(request), request.POST.get("key", "")
    reading = reading_or_404(request, gate_id, key=key)
    gate, looked_at = reading.gate, proposal_of(reading.proposal, request)
    form = form_with_files(request, gate, by=user)
    sent = posted.read_over(form, looked_at)
    if sent.typed.errors:
        refusal = errors.Invalid(sent.typed.errors)
        return refused(request, page_or_404(request, gate_id), sent, looked_at, refusal)
    submission = Submission(seen=digest_of(request), key=key, **sent.decision)
    confirmed = step_up.of_session(request)
    try:
        decision = deciding.decide(gate, submission, by=user, confirmed=confirmed, reading=reading)
    except errors.DecisionRefused as refusal:
        led = ask_confirmation(looked_at, form, by=user) if isinstance(refusal, errors.NotConfirmed) else None
        return led or refused(request, page_or_404(request, gate_id), sent, looked_at, refusal)
    if not decision.counts:
        return sent_before(request, page_or_404(request, gate_id), sent, looked_at)
    if reading.drafted:
        Draft.objects.drop(gate, by=user)  # after the decision, so that it does not wait for this
    return redirect_after(request, gate_id)


@gate_post
def undo(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Take the reader's own decision back; `decision`: its number, where the page named one."""
    page, wanted = page_or_404(request, gate_id), number_in(request.POST.get("decision", ""))
    try:
        undone = take_back(page.gate, by=page.user, decision=wanted)
    except errors.DecisionRefused as refusal:
        status = errors.STATUSES.get(refusal.code, 409)
        return show(request, page_or_404(request, gate_id), status=status, refusal=words(refusal))
    return HttpResponseRedirect(f"{reverse('gate', args=[gate_id])}?undone={undone.pk}#decide", status=303)


def digest_of(request: HttpRequest) -> bytes:
    """Return the digest *seen* from the form; b"" for junk."""
    try:
        return bytes.fromhex(request.POST.get("seen", ""))
    except ValueError:
        return b""


def ask_confirmation(looked_at: Proposal, form: Mapping[str, str], *, by: User) -> HttpResponse | None:
    """Redirect to the confirmation of who decides, and from there to the gate; None where the form cannot be kept.

    The decision is not sent again by itself afterwards. The gate's page shows the draft, read against the proposal of
    then, in a form with the same key, and the person who confirmed presses the button again.
    """
    fields, key = pick_fields(form, looked_at), make_storable(form.get("key", ""))
    if sum(map(len, fields.values())) > MOST_CHARACTERS:
        return None
    try:
        Draft.objects.keep(looked_at.gate, by=by, proposal=looked_at.number, fields=fields, key=key)
    except NotKept:
        return None
    back = f"{reverse('gate', args=[looked_at.gate_id])}?{urlencode({'key': key})}#decide"
    return HttpResponseRedirect(step_up.address(back, looked_at.gate.policy.step_up_method), status=303)


def refused(
    request: HttpRequest, page: GatePage, sent: PostedDecision, looked_at: Proposal, refusal: errors.DecisionRefused
) -> HttpResponse:
    """Show the gate with the reason why the decision was not recorded, and with all that was typed."""
    found = list(refusal.errors) if isinstance(refusal, errors.Rejected) else []
    fill(page, sent, problems=found)
    told = words(refusal)
    told["unsent_edit"] = any(each["message"] == str(UNSENT) for each in found)
    if told["unsent_edit"]:  # preview the edit, so that it can be sent at once
        made = preview_edit(page, replace(sent.typed, errors=()))
        page.typed = replace(made, errors=[*found, *made.errors])
    fill_impact(page, request, sent, refusal)
    page.unlooked = isinstance(refusal, errors.SecondLookNeeded)
    if isinstance(refusal, errors.StaleGate):
        carry(page, sent, looked_at)
        edits = page.typed.arguments or page.typed.posted.get(whole_state.NAME)
        page.verdict = sent.chosen if page.ballots else "edit" if edits else ""
        told["changes"] = [] if refusal.answered else refusal.changes or changes_between(looked_at.card, page.card)
    if not page.may_send:
        told["mine"] = typed_edits.rows(sent.typed, looked_at.card)
        told["comment"] = sent.comment
        told["each"] = words_on_each(looked_at, sent) if sent.chosen == posted.EACH else []
    return show(request, page, status=errors.STATUSES.get(refusal.code, 409), refusal=told)


def sent_before(request: HttpRequest, page: GatePage, sent: PostedDecision, looked_at: Proposal) -> HttpResponse:
    """Show the gate where the form made a decision before that counts no more, with a form that makes another one."""
    if looked_at.number == page.gate.proposal:
        fill(page, sent)
    said = "This form was sent before, and its decision was taken back or counts no more. Send it again to decide."
    told = {"title": NOT_SENT, "said": said, "tone": "hold", "icon": "reply"}
    return show(request, page, status=409, refusal=told, key=new_key())


def fill_impact(page: GatePage, request: HttpRequest, sent: PostedDecision, refusal: errors.DecisionRefused) -> None:
    """Show the impact of each choice with the typed values, where the decision was refused for its impact."""
    if isinstance(refusal, RepeatNotConfirmed):
        page.unconfirmed, page.unconfirmed_at = [each.effect for each in refusal.repeats], sent.choice
    if isinstance(refusal, (ConsequencesChanged, RepeatNotConfirmed)) and page.may_send:
        fill_in(page, form_with_files(request, page.gate, by=page.user))


def words(refusal: errors.DecisionRefused) -> dict[str, Any]:
    """Return the words that a person reads about a refusal."""
    wrong = isinstance(refusal, errors.Rejected)
    said = "Correct what is listed here. Your input is kept." if wrong else str(refusal)
    if isinstance(refusal, RepeatNotConfirmed):
        said = "It would do something again that was already done. Tick the box to confirm it. Your input is kept."
    title = TITLES.get(refusal.code, NOT_SENT)
    icon = {"stale": "reply", "already_decided": "people", "expired": "clock"}.get(refusal.code, "warn")
    return {
        "title": title,
        "said": said,
        "tone": "hold" if refusal.code in ("stale", "impact_changed", "needs_confirmation", "second_look") else "stop",
        "icon": icon,
    }


def words_on_each(looked_at: Proposal, sent: PostedDecision) -> list[tuple[str, str, str]]:
    """List (title, verdict, words) of the choice for each action, for a page without a form to keep it in."""
    provenance = Provenance.of(looked_at.gate)
    return [
        (provenance.named(action), DONE.get(chosen.verdict, ("not decided",))[0], chosen.hiding(action).words)
        for action in looked_at.card.actions
        if (chosen := sent.each.get(action.id)) is not None
    ]
