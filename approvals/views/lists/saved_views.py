"""The page of saved views: makes, renames, shares and removes the reader's own."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from approvals.live.page_frame import reach_of
from approvals.models import SavedView
from approvals.views.access import number_in, private_get, private_post, reader_of
from checkpoints.postgresql.sql import make_storable

from .asked import InboxFilters, OwnLists

MOST = 50  # of one person
LONGEST = 600  # characters of a query, which would mean something else if it were cut


class NotSaved(Exception):
    """A view that was not saved; the message says why."""


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """List the views that the reader sees."""
    return _show(request)


def _show(request: HttpRequest, *, why: str = "", status: int = 200) -> HttpResponse:
    reach = reach_of(request)
    views = OwnLists.of(reach).views
    context = {
        "own": [view for view in views if view.user_id == reach.user],
        "shared": [view for view in views if view.user_id != reach.user],
        "teams_seen": list(reach.teams.items()), "why": why,
    }  # fmt: skip
    return render(request, "approvals/inbox/views.html", context, status=status)


@private_post
def create(request: HttpRequest) -> HttpResponse:
    """Save what the reader looks at as a view of their own."""
    reader, query = reader_of(request), InboxFilters.of(request.POST.dict()).query()
    try:
        if SavedView.objects.filter(user=reader).count() >= MOST:
            raise NotSaved(f"You have {MOST} views already. Remove one first.")
        if len(query) > LONGEST:
            raise NotSaved("Its search is too long to be saved. Search for fewer words.")
        view = _written(SavedView(user=reader, query=query), request)
    except NotSaved as refusal:
        return _show(request, why=str(refusal), status=422)
    return HttpResponseRedirect(f"{reverse('inbox')}?view={view.pk}", status=303)


@private_post
def change(request: HttpRequest, view_id: int) -> HttpResponse:
    """Rename one of the reader's own views, share it, or open the inbox with it; with `remove`, remove it."""
    view = get_object_or_404(SavedView, user=reader_of(request), pk=view_id)
    if "remove" in request.POST:
        view.delete()
        return HttpResponseRedirect(reverse("views"), status=303)
    try:
        _written(view, request)
    except NotSaved as refusal:
        return _show(request, why=str(refusal), status=422)
    return HttpResponseRedirect(reverse("views"), status=303)


def _written(view: SavedView, request: HttpRequest) -> SavedView:
    """Save a view with the name, the team and the start that were posted. Raises NotSaved."""
    said: dict[str, Any] = request.POST.dict()
    name, team = make_storable(" ".join(said.get("name", "").split())), said.get("team", "")
    if not 0 < len(name) <= 60:
        raise NotSaved("Give the view a name of at most 60 characters.")
    view.name = name
    view.team_id = number if (number := number_in(team, 9)) in reach_of(request).teams else None
    view.opens = said.get("opens") == "yes"
    try:
        with transaction.atomic():
            User.objects.select_for_update(no_key=True).get(pk=view.user_id)  # one view at a time opens the inbox
            if view.opens:
                SavedView.objects.filter(user=view.user_id, opens=True).exclude(pk=view.pk).update(opens=False)
            view.save()
    except IntegrityError as taken:
        raise NotSaved("You have another view of this name. Choose another name.") from taken
    return view
