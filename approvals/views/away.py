"""The page of one's times away: planned ones, who decides meanwhile, and for whom the reader decides."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from approvals.assignments import away
from approvals.assignments.errors import AwayRefused
from approvals.models import Delegation
from checkpoints.access.permissions import colleagues_of

from .access import number_in, private_get, private_post, reader_of

SHOWN = "%Y-%m-%dT%H:%M"


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show the reader's times away, and the form that plans one."""
    return _show(request)


@private_post
def create(request: HttpRequest) -> HttpResponse:
    """Plan a time away; 422 with what was typed where that cannot be."""
    form = request.POST
    try:
        away.make(
            reader_of(request),
            starts=_moment(form.get("starts", "")),
            ends=_moment(form.get("ends", "")),
            delegate=_colleague(reader_of(request), form.get("delegate", "")),
            teams=[team for each in form.getlist("teams") if (team := number_in(each, 9)) is not None],
            policies=form.getlist("policies"),
        )
    except AwayRefused as refusal:
        return _show(request, refusal)
    return HttpResponseRedirect(reverse("away"), status=303)


@private_post
def end(request: HttpRequest, delegation: int) -> HttpResponse:
    """End one of the reader's own times away."""
    mine = get_object_or_404(Delegation, pk=delegation, person=reader_of(request))
    away.end(mine, by=reader_of(request))
    return HttpResponseRedirect(reverse("away"), status=303)


def _show(request: HttpRequest, refusal: AwayRefused | None = None) -> HttpResponse:
    reader, now = reader_of(request), timezone.localtime()
    morning = (now + timedelta(days=1)).replace(hour=8, minute=0)
    typed: Any = request.POST or {
        "starts": morning.strftime(SHOWN), "ends": (morning + timedelta(days=7)).strftime(SHOWN),
    }  # fmt: skip
    planned = Delegation.objects.standing().select_related("delegate", "person")
    context = {
        "section": "away", "refused": refusal, "typed": typed, "now": timezone.now(),
        "zone": timezone.get_current_timezone_name(),
        "planned": _shown(planned.filter(person=reader).order_by("starts_at", "pk")),
        "others": planned.filter(delegate=reader).order_by("starts_at", "pk"),
        "colleagues": colleagues_of(reader)[:500], "scopes": away.scopes(reader),
        "teams": request.POST.getlist("teams"), "policies": request.POST.getlist("policies"),
    }  # fmt: skip
    return render(request, "account_pages/away.html", context, status=refusal.status if refusal else 200)


def _shown(planned: QuerySet[Delegation]) -> list[dict[str, Any]]:
    """List delegations with the names of the teams that they are for."""
    rows = list(planned)
    named = {team.pk: team.name for team, _names in (away.scopes(rows[0].person) if rows else ())}
    return [
        {"made": each, "teams": [named[pk] for pk in each.teams if pk in named], "policies": each.policies}
        for each in rows
    ]


def _moment(text: str) -> datetime:
    """Read a date and a time by the clock on the reader's wall. Raises AwayRefused."""
    try:
        shown = datetime.strptime(text, SHOWN)
        return timezone.make_aware(shown)
    except (ValueError, OverflowError) as error:
        raise AwayRefused("Write the beginning and the end as a date and a time.") from error


def _colleague(reader: User, said: str) -> User | None:
    if not said:
        return None
    number = number_in(said, 9)
    found = colleagues_of(reader).filter(pk=number).first() if number is not None else None
    if found is None:
        raise AwayRefused("Choose somebody who is in one of your teams.")
    return found
