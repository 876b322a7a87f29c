"""A decision by somebody who has to give their password again first: all that they entered is kept, and they come back.

What was POSTed is not sent again by itself afterwards. The page shows it as it was entered, over what is asked by then,
and whoever gave the password presses the button over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from approvals.models import Draft, Gate, Proposal
from approvals.models.draft import MOST_CHARACTERS, NotKept
from approvals.policy import step_up
from approvals.presentation.decision_form import whole_state
from approvals.presentation.decision_form.draft_fields import kept
from checkpoints.postgresql.sql import storable

from .access import reader_of


def lead(request: HttpRequest, gate: Gate, looked_at: Proposal, form: Mapping[str, str]) -> HttpResponse | None:
    """Lead to the page that asks for the password, and from there to the gate; None if what was entered is not kept."""
    fields, key = kept(form, looked_at.card, whole_state.veil_of(gate)), storable(form.get("key", ""))
    if sum(map(len, fields.values())) > MOST_CHARACTERS:
        return None
    try:
        Draft.objects.keep(gate, by=reader_of(request), proposal=looked_at.number, fields=fields, key=key)
    except NotKept:
        return None
    return HttpResponseRedirect(address(gate, key), status=303)


def address(gate: Gate, key: str) -> str:
    """Return where the password is asked for; the form that is drawn afterwards is the same one, by its key."""
    return step_up.address(reverse("gate", args=[gate.pk]) + "?" + urlencode({"key": key}) + "#decide")
