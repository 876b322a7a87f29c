"""The page on which a person gives a program a token by its code (RFC 8628).

Opening the page does nothing, whatever its address says: the code is sent by a form. The request that was found stays
in the session, so that the page can be loaded again and the password be confirmed in between.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from agents import device_codes
from agents.access import address_of
from agents.errors import TokenRefused, TooManyGuesses, WrongCode
from agents.models import DeviceRequest
from approvals.policy import step_up
from approvals.presentation.gate_facts.step_up import asked as password
from approvals.views.access import private_get, private_post, reader_of
from checkpoints.postgresql.sql import make_storable

FOUND = "device"  # in the session: the request's number


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show the request that the reader found, or the form for its code."""
    found = device_codes.pending(request.session.get(FOUND))
    return _show(request, pending=found, typed=make_storable(request.GET.get("code", ""))[:20])


@private_post
def enter(request: HttpRequest) -> HttpResponse:
    """Find the request by its code; 422 for a wrong one, 429 after too many."""
    typed = make_storable(request.POST.get("code", ""))[:40]
    try:
        found = device_codes.find(typed, by=reader_of(request))
    except WrongCode as refused:
        status = 429 if isinstance(refused, TooManyGuesses) else 422
        return _show(request, typed=typed[:20], refused=str(refused), status=status)
    request.session[FOUND] = found.pk
    return HttpResponseRedirect(reverse("device"), status=303)


@private_post
def confirm(request: HttpRequest) -> HttpResponse:
    """Let the program collect a token, once its person confirmed who they are."""
    reader, found = reader_of(request), _pending_request(request)
    if found is None:
        return _gone(request)
    if not step_up.counts(step_up.of_session(request), by=reader, now=timezone.now()):
        if not step_up.possible(reader):
            return _show(request, pending=found, status=422)
        back = request.path.removesuffix("confirmations/")
        return HttpResponseRedirect(step_up.address(back), status=303)
    try:
        if not device_codes.confirm(found, by=reader):
            return _gone(request)
    except TokenRefused as refused:
        return _show(request, pending=found, refused=str(refused), status=422)
    del request.session[FOUND]
    return _show(request, done=found)


@private_post
def refuse(request: HttpRequest) -> HttpResponse:
    """Refuse the request; its program is told."""
    found = _pending_request(request)
    if found is None or not device_codes.refuse(found, by=reader_of(request)):
        return _gone(request)
    del request.session[FOUND]
    return _show(request, done=found)


def _pending_request(request: HttpRequest) -> DeviceRequest | None:
    """Return the pending request that the form is about; it must be the one of the session, which the reader saw."""
    number = request.session.get(FOUND)
    return device_codes.pending(number) if request.POST.get("request") == str(number) else None


def _gone(request: HttpRequest) -> HttpResponse:
    words = "This request has expired, or was confirmed or refused before. Start again in your terminal."
    return _show(request, refused=words, status=409)


def _show(
    request: HttpRequest, *, pending: DeviceRequest | None = None, typed: str = "", refused: str = "",
    status: int = 200, done: DeviceRequest | None = None,
) -> HttpResponse:  # fmt: skip
    reader = reader_of(request)
    if done is not None:
        done.refresh_from_db()
    context = {
        "asked": pending, "typed": typed, "refused": refused, "done": done,
        "here": pending is not None and pending.address == address_of(request)[:60],
        "ends": timezone.now() + pending.lasts if pending else None,
        "password": password(reader, step_up.of_session(request)),
    }  # fmt: skip
    return render(request, "tokens/device.html", context, status=status)
