"""The page of a person's notification settings, and the places where they are reached beside e-mail: browsers, Slack.

Opening it, as mail programs do by themselves, changes nothing.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.urls import reverse

from approvals.accounts import preferences, pushed, sign_ins
from approvals.channels import browsers, slack, vapid
from approvals.models import Message, NotificationPreference
from approvals.notifications import account, delivering, log
from approvals.notifications.building import NoticeKind
from approvals.notifications.channel import channels
from approvals.time_zones import COOKIE, known_zones
from checkpoints.postgresql.sql import make_storable

from .access import private_get, private_post, reader_of

TESTS = 5  # test messages of one person to one address, on average, within ten minutes
SAID = ("endpoint", "p256dh", "auth")
LONGEST = 2000  # characters of each


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show the reader's settings, and what they were told lately."""
    return show(request, account.of(reader_of(request)), saved="saved" in request.GET, tested="tested" in request.GET)


@private_post
def change(request: HttpRequest) -> HttpResponse:
    """Store the settings; 422 with the stored ones where one cannot be."""
    reader = reader_of(request)
    try:
        account.save(reader, request.POST)
    except account.SettingsRefused as refused:
        return show(request, account.of(reader), refused=str(refused), status=422)
    response = HttpResponseRedirect(reverse("notifications") + "?saved", status=303)
    preferences.hand_over(response, preferences.profile_of(reader))
    return response


@private_post
def test(request: HttpRequest) -> HttpResponse:
    """Send the reader a test message to each of their addresses of one channel."""
    reader, name = reader_of(request), make_storable(request.POST.get("channel", ""))
    chosen = next((each for each in channels() if each.name == name), None)
    found = [each for each in chosen.addresses(people=[reader.pk]) if each.person == reader.pk] if chosen else []
    lately = Message.objects.filter(
        user=reader, channel=name, kind=NoticeKind.TEST, created_at__gt=Now() - timedelta(minutes=10)
    ).count()
    if not found:
        refused = "You have no address there that a message could go to."
    elif lately >= TESTS * len(found):
        refused = "You sent several test messages just now. See below what became of them."
    else:
        Message.objects.bulk_create(
            Message(kind=NoticeKind.TEST, channel=name, user=reader, address_id=each.id, urgency=2) for each in found
        )
        delivering.ring()
        return HttpResponseRedirect(reverse("notifications") + "?tested#log", status=303)
    return show(request, account.of(reader), refused=refused, status=422)


def show(
    request: HttpRequest, settings: NotificationPreference, *, saved: bool = False, tested: bool = False,
    refused: str = "", status: int = 200,
) -> HttpResponse:  # fmt: skip
    """Show the page."""
    reader = reader_of(request)
    fit = channels()
    addresses = {each.name: each.addresses(people=[reader.pk]) for each in fit}
    browsers = request.COOKIES.get(COOKIE, "")
    settings.zone = preferences.profile_of(reader).zone or (browsers if browsers in known_zones() else "UTC")
    context = {
        "settings": settings, "saved": saved, "tested": tested, "refused": refused,
        "channels": [(each, addresses[each.name]) for each in fit],
        "rows": account.rows(settings), "lead": account.lead_of(settings), "zones": sorted(known_zones()),
        "log": log.of_person(reader), "digests": _digests(settings), "reader": reader,
    }  # fmt: skip
    return render(request, "notifications/page.html", context, status=status)


def _digests(settings: NotificationPreference) -> list[tuple[int, str]]:
    times = [f"{at:%H:%M}" for at in settings.digest_at]
    return [(n, times[n - 1] if n <= len(times) else "") for n in range(1, account.DIGESTS + 1)]


@private_get
def browser_keys(request: HttpRequest) -> HttpResponse:
    """Answer what the service worker needs to subscribe again: the key of this installation, and a token to post."""
    return JsonResponse({"key": vapid.public_key(), "token": get_token(request)})


@private_post
def subscribe_browser(request: HttpRequest) -> HttpResponse:
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


@private_post
def end_browser(request: HttpRequest, browser: int) -> HttpResponse:
    """Turn messages off in one browser."""
    if not browsers.remove(reader_of(request), browser):
        raise Http404("No such browser")
    return HttpResponseRedirect(reverse("notifications") + "#channels", status=303)


@private_post
def look_up_in_slack(request: HttpRequest) -> HttpResponse:
    """Have the next message look for the person by the e-mail address of their account."""
    slack.look_again(reader_of(request))
    return HttpResponseRedirect(reverse("notifications") + "#channels", status=303)
