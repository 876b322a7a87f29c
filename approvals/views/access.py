"""Guards the pages of gates: whoever may not see a gate gets 404, as if it did not exist."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlsplit, urlunsplit

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from approvals.audit import evidence
from approvals.gates.page.shown_gate import ShownGate, shown
from approvals.gates.reading import GateReading, read
from approvals.models import Gate, Proposal
from approvals.presentation.gate_page.page import GatePage
from checkpoints import store
from checkpoints.errors import CheckpointRemoved, NoSuchCheckpoint, NotVerified
from checkpoints.postgresql.sql import make_storable
from checkpoints.store import gaps

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def private(view: View[P]) -> View[P]:
    """Let only signed-in people in, and let no cache keep the answer.

    Others sign in first, then come back to the page that they asked for or sent a form from. The store's reads are
    cached for a page; a write reads afresh, so that it finds damage since then.
    """

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            page = urlsplit(request.headers.get("Referer", ""))
            sent = request.method not in ("GET", "HEAD") and page.netloc == request.get_host()
            back = urlunsplit(("", "", page.path, page.query, "")) if sent else request.get_full_path()
            return redirect_to_login(back)
        with store.reading() if request.method in ("GET", "HEAD") else nullcontext():
            response = view(request, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response

    return guarded


def verified(view: View[P]) -> View[P]:
    """Guard a view of a gate's saved state: 409 for one that does not verify, 410 for one that was removed."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except NotVerified as fault:
            gate = _seen_or_404(request, _gate_named(request)).gate
            return render(
                request, "approvals/refusals/unverified.html", {"gate": gate, "fault": str(fault)}, status=409
            )
        except NoSuchCheckpoint:
            gate = gate_or_404(request, _gate_named(request))
            return render(
                request, "approvals/refusals/data_deleted.html", {"gate": gate, "why": why_gone(gate)}, status=410
            )

    return guarded


def private_get(view: View[P]) -> View[P]:
    """Guard a page: GET and HEAD alone, of whoever is signed in."""
    return require_safe(private(view))


def private_post(view: View[P]) -> View[P]:
    """Guard an order: POST alone, of whoever is signed in."""
    return require_POST(private(view))


def gate_get(view: View[P]) -> View[P]:
    """Guard a page of a gate."""
    return private_get(verified(view))


def gate_post(view: View[P]) -> View[P]:
    """Guard an order at a gate."""
    return private_post(verified(view))


def why_gone(gate: Gate) -> str:
    """Say by which policy, and when, the saved state of a closed gate was removed."""
    found = gaps.find_gap(gate.checkpoint, [gate.run_id])
    return str(CheckpointRemoved(found[0], found[1].seq)) if found else "Its checkpoint is not there any more."


def number_in(text: str, digits: int = 18) -> int | None:
    """Return the number that a text is, of at most so many digits; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def reader_of(request: HttpRequest) -> User:
    """Return the signed-in person; `private` has made sure that there is one."""
    if not isinstance(request.user, User):
        raise Http404
    return request.user


def gate_or_404(request: HttpRequest, gate_id: int) -> Gate:
    """Return the gate, where the reader may see it; else 404. Raises NotVerified."""
    return shown_or_404(request, gate_id).gate


def reading_or_404(request: HttpRequest, gate_id: int, *, key: str) -> GateReading:
    """Return the gate as read for a decision under this key, where the reader may see it; else 404.

    Nothing of it is verified yet: the decision does that.
    """
    reader = reader_of(request)
    try:
        reading = read(gate_id, user_id=reader.pk, key=make_storable(key))
    except Proposal.DoesNotExist as missing:
        raise Http404("No such gate") from missing
    if not reading.stands.by and not Gate.objects.visible_to(reader).filter(pk=gate_id).exists():
        raise Http404("No such gate")
    return reading


def page_or_404(request: HttpRequest, gate_id: int) -> GatePage:
    """Return the gate's page, where the reader may see it; else 404. Raises NotVerified."""
    return GatePage(shown_or_404(request, gate_id), reader_of(request))


def shown_or_404(request: HttpRequest, gate_id: int) -> ShownGate:
    """Return the gate as read for its page, where the reader may see it; else 404. Raises NotVerified."""
    found = _seen_or_404(request, gate_id)
    evidence.check(found.standing, getattr(found.gate, "outcome", None))
    return found


def _gate_named(request: HttpRequest) -> int:
    """Return the id of the gate that the address names."""
    return int(request.resolver_match.kwargs.get("gate_id", 0)) if request.resolver_match else 0


def _seen_or_404(request: HttpRequest, gate_id: int) -> ShownGate:
    found = shown(gate_id, to=reader_of(request))
    if found is None:
        raise Http404("No such gate")
    return found
