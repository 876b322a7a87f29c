"""The page of a person's notification settings. Opening it, as mail programs do by themselves, changes nothing."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from approvals.accounts import preferences
from approvals.models import Message, NotificationPreference
from approvals.notifications import changing, log, notifying
from approvals.notifications.channel import channels
from approvals.notifications.message import NoticeKind
from approvals.time_zones import COOKIE, known_zones
from approvals.views.access import private, reader_of
from checkpoints.postgresql.sql import make_storable

TESTS = 5  # test messages of one person to one address, on average, within ten minutes


@require_safe
@private
def page(request: HttpRequest) -> HttpResponse:
    """Show the reader's settings, and what they were told lately."""
    return show(request, changing.of(reader_of(request)), saved="saved" in request.GET, tested="tested" in request.GET)


@require_POST
@private
def change(request: HttpRequest) -> HttpResponse:
    """Store the settings; 422 with the stored ones where one cannot be."""
    reader = reader_of(request)
    try:
        changing.save(reader, request.POST)
    except changing.SettingsRefused as refused:
        return show(request, changing.of(reader), refused=str(refused), status=422)
    response = HttpResponseRedirect(reverse("notifications") + "?saved", status=303)
    preferences.hand_over(response, preferences.profile_of(reader))
    return response


@require_POST
@private
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
        notifying.ring()
        return HttpResponseRedirect(reverse("notifications") + "?tested#log", status=303)
    return show(request, changing.of(reader), refused=refused, status=422)


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
        "rows": changing.rows(settings), "lead": changing.lead_of(settings), "zones": sorted(known_zones()),
        "log": log.of_person(reader), "digests": _digests(settings), "reader": reader,
    }  # fmt: skip
    return render(request, "notifications/page.html", context, status=status)


def _digests(settings: NotificationPreference) -> list[tuple[int, str]]:
    times = [f"{at:%H:%M}" for at in settings.digest_at]
    return [(n, times[n - 1] if n <= len(times) else "") for n in range(1, changing.DIGESTS + 1)]
