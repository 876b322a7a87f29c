"""Shows one gate's page, and the parts of it that are fetched again.

A decision leads to the next gate of the reader's queue, unless they chose otherwise: by a box beside the button that
sends, ticked until the reader unticks it, and kept in a cookie.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from approvals import time_zones
from approvals.consequences.performed import read_fates
from approvals.decisions.prepared_decision import changes_since
from approvals.gates.lists.queue_filters import QueueFilters
from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.gates.page.shown_gate import counted
from approvals.live import page_frame
from approvals.models import Gate, GateVisit, Message
from approvals.notifications import log
from approvals.policy import step_up
from approvals.presentation.gate_facts import agreement, outcomes
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.presentation.gate_page.filled import drafted
from approvals.presentation.gate_page.page import GatePage
from checkpoints import store
from checkpoints.access.permissions import PersonKind, kind_of
from checkpoints.postgresql.capped_count import MOST, Capped
from checkpoints.postgresql.prepared_rows import prepared_statement

from .access import gate_get, number_in, page_or_404, reader_of, shown_or_404
from .lists.asked import followed

FOLLOW = "holdpoint_follow"  # the cookie
YEAR = 365 * 24 * 60 * 60  # seconds
AHEAD = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")  # where a browser says that it fetches in case somebody comes


@gate_get
def page(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the gate: what is asked, over which state, and the form that decides it."""
    shown, reader = shown_or_404(request, gate_id), reader_of(request)
    ahead = " ".join(request.headers.get(name, "") for name in AHEAD).lower()
    if request.method == "GET" and not any(word in ahead for word in ("prefetch", "prerender", "preview")):
        if shown.unopened:
            Message.objects.opened(gate_id, by=reader)
        if time_zones.COOKIE not in request.COOKIES:  # no script, which else says what is in sight
            GateVisit.objects.look(gate_id, by=reader, proposal=shown.gate.proposal)
    return show(request, drafted(shown, reader))


def show(
    request: HttpRequest, page: GatePage, *, status: int = 200, refusal: dict[str, Any] | None = None, key: str = ""
) -> HttpResponse:
    """Show a gate's page, also after a decision that was not recorded. `key`: the form's, where it gets a new one."""
    if page.open:  # the impacts' history before the shown state, since both need the same rows
        store.expect([page.gate.checkpoint])
        _ = page.future.history
    page.confirmed = step_up.of_session(request)
    known = page.read.draft if page.read else None  # an emptied one too, which no late request may overwrite
    number, undone = number_in(request.GET.get("undone", "")), None  # the decision that the reader has just undone here
    if number is not None and not page.agreement.mine:  # until they decide again
        undone = page.gate.decisions.filter(pk=number, user=page.user, counts=False).first()
    context = {
        "page": page, "refusal": refusal,
        # After a password confirmation the key is in the address, so that the same form is sent again.
        "key": key or request.POST.get("key") or request.GET.get("key") or new_key(),
        "draft_seen": request.POST.get("draft_seen", known.kept_at.isoformat() if known else ""),
        "place": place(request, page.gate.pk), "follows": wants_next(request),
        "followed": decided_before(request), "undone": undone, "told": log.of_gate(page.read.told),
    }  # fmt: skip
    return render(request, "approvals/gate/page.html", context, status=status)


def new_key() -> str:
    """Return a key for a form: what is sent under the same one is recorded once."""
    return uuid.uuid4().hex


def place(request: HttpRequest, gate_id: int) -> dict[str, int | str | None]:
    """Return the gate's place in the reader's own queue, and its neighbours there."""
    frame, wanted = page_frame.of(request), followed(request)
    queue = frame.queue if frame else []
    if wanted != QueueFilters():  # in another order than the frame, or only some of it
        queue = page_frame.reach_of(request).ids(MINE, most=MOST + 1, wanted=wanted)
    if frame is None or gate_id not in queue:  # just decided: go on after its place; far down the queue: from the start
        whole = frame is not None and not frame.waiting.more
        after = page_frame.reach_of(request).ids(MINE, most=1, wanted=replace(wanted, after=gate_id)) if whole else []
        return {"next": (after or queue)[0]} if after or queue else {}
    at = queue.index(gate_id)
    total = Capped(min(len(queue), MOST), len(queue) > MOST)
    return {
        "number": at + 1, "total": str(total),
        "previous": queue[at - 1] if at else None, "next": queue[at + 1] if at + 1 < len(queue) else None,
    }  # fmt: skip


@gate_get
def status(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the parts that change while the page is open: status, agreement, news of another version.

    Once the gate has ended, also what that changes for the reader: their queue, and the gate's place in it. Every
    viewer of an open gate asks for this at each remark, and their queue takes longer to read than all the rest.
    """
    page = page_or_404(request, gate_id)
    number = number_in(request.GET.get("seen", ""), 9)
    # Most pages show the current proposal; an unknown number counts as that.
    before = None
    if number is not None and number != page.gate.proposal:
        before = page.gate.proposals.filter(number=number).first()
    seen = before.number if before else page.gate.proposal
    changed = changes_since(page.gate, bytes(before.digest)) if before else []
    context = {"page": page, "seen": seen, "changed": changed}
    context |= {"place": place(request, page.gate.pk)} if page.ended else {}
    return render(request, "approvals/gate/live_update.html", context)


@gate_get
def receipt(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the receipt of a gate by itself, to be printed; to htmx only the part that goes into the gate's page."""
    page = page_or_404(request, gate_id)
    part = request.headers.get("HX-Request") == "true"
    return render(request, "approvals/receipt/receipt.html" if part else "approvals/receipt/page.html", {"page": page})


@gate_get
def preview(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the gate in short, beside the inbox."""
    page = page_or_404(request, gate_id)
    return render(request, "approvals/inbox/preview.html", {"page": page})


def wants_next(request: HttpRequest) -> bool:
    """Tell whether the reader wants the next gate to follow."""
    if "follows" in request.POST:  # set just now, in a form that is shown again
        return request.POST.get("follow") == "yes"
    return request.COOKIES.get(FOLLOW) != "no"


def redirect_after(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Redirect to the page after a decision: the next gate's where the form offered it, else the gate's own."""
    own = reverse("gate", args=[gate_id])
    if "follows" not in request.POST:
        return HttpResponseRedirect(own, status=303)
    on = request.POST.get("follow") == "yes"
    reach = page_frame.reach_of(request)
    found = following(request, reach, gate_id) if on else []
    to = f"{reverse('gate', args=[found[0]])}?decided={gate_id}" if found else own
    response = HttpResponseRedirect(to, status=303)
    said = "yes" if on else "no"
    response.set_cookie(FOLLOW, said, max_age=YEAR, samesite="Lax", httponly=True, secure=request.is_secure())
    return response


def following(request: HttpRequest, reach: ReaderReach, gate_id: int) -> list[int]:
    """Return the id of the gate after this one in the list that the reader came from; else the first of their queue.

    Where the end of the list is reached, its beginning follows: gates may have come before those already passed.
    """
    wanted = followed(request)
    shown = [replace(wanted, after=gate_id), wanted]
    for each in (*shown, QueueFilters()) if wanted != QueueFilters() else shown:
        if found := reach.ids(MINE, most=1, wanted=each):
            return found
    return []


def decided_before(request: HttpRequest) -> dict[str, Any] | None:
    """Return the gate that the reader has just decided, for the page of the next one."""
    number, reader = number_in(request.GET.get("decided", "")), reader_of(request)
    gate = None if number is None else next(iter(_visible(number, reader.pk, kind=kind_of(reader))), None)
    if gate is None:
        return None
    if outcome := getattr(gate, "outcome", None):
        outcome._prefetched_objects_cache = {"decisions": counted(outcome)}
    fate = read_fates([gate]).get(gate.pk)
    ended = outcomes.ended(gate, fate=fate) if gate.status != Gate.Status.OPEN else None
    return {"gate": gate, "ended": ended, "provenance": Provenance.of(gate), "held": agreement.short(gate)}


@prepared_statement
def _visible(pk: Any, user: Any, *, kind: PersonKind) -> QuerySet[Gate]:
    seen = Gate.objects.visible_to(kind.person(user)).filter(pk=pk)
    return seen.select_related("run__plan", "outcome__proposal")
