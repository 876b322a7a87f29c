"""Who may see a run: members of its team who may view runs. Anybody else gets a 404."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

from approvals.views.access import reading_of, signed_in
from checkpoints.models import Run

P = ParamSpec("P")


class Gone(Http404):
    """What is asked for was there; the message says what became of it. Answered with 410."""


View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def reader_of(request: HttpRequest) -> User:
    """Return the signed-in person; `private` has made sure that there is one."""
    if not isinstance(request.user, User):
        raise Http404
    return request.user


def private(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Admit signed-in people only, and keep the answer out of caches: what a run holds is its team's."""

    @wraps(view)
    def read(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        with reading_of(request):
            return view(request, *args, **kwargs)

    return signed_in(never_cache(read))


def run_or_404(request: HttpRequest, run_id: int) -> Run:
    """Return the run, where the reader may see it."""
    found = Run.objects.visible_to(reader_of(request)).select_related("plan", "team", "started_by").filter(pk=run_id)
    run = found.first()
    if run is None:
        raise Http404("No such run")
    return run


def is_fragment(request: HttpRequest) -> bool:
    """Tell whether a page asks for a part of itself."""
    return request.headers.get("HX-Request") == "true"
