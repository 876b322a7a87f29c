"""Turns pushed messages on and off for the browsers of the signed-in person."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import get_token
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from approvals.accounts import pushed, sign_ins
from approvals.channels import browsers, vapid
from approvals.views.access import private, reader_of

SAID = ("endpoint", "p256dh", "auth")
LONGEST = 2000  # characters of each


@require_safe
@private
def keys(request: HttpRequest) -> HttpResponse:
    """Answer what the service worker needs to subscribe again: the key of this installation, and a token to post."""
    return JsonResponse({"key": vapid.public_key(), "token": get_token(request)})


@require_POST
@private
def subscribe(request: HttpRequest) -> HttpResponse:
    """Turn messages on in the browser that asks, for its script; 410 with `again` where its owner removed it."""
    if not vapid.public_key():
        return JsonResponse({"problem": "This installation cannot push messages."}, status=409)
    said = {name: request.POST.get(name, "")[: LONGEST + 1] for name in SAID}
    label = sign_ins.name_browser(request.headers.get("User-Agent", ""))
    reader, again = reader_of(request), "again" in request.POST
    old, number = request.POST.get("old", ""), request.session.get(pushed.NUMBER)
    try:
        made = browsers.subscribe(reader, said, label=label, again=again, old=old, number=number)
    except browsers.SubscriptionRefused as why:
        return JsonResponse({"problem": str(why)}, status=422)
    except browsers.BrowserRemoved:
        return JsonResponse({"problem": "This browser was removed."}, status=410)
    response = JsonResponse({"browser": made.pk}, status=201)
    pushed.turned_on(request, response, made.pk, reader=reader)
    return response


@require_POST
@private
def remove(request: HttpRequest, browser: int) -> HttpResponse:
    """Turn messages off in one browser."""
    if not browsers.remove(reader_of(request), browser):
        raise Http404("No such browser")
    return HttpResponseRedirect(reverse("notifications") + "#channels", status=303)
