"""Access to a run: for members of its team who may view runs. Anybody else gets a 404."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from approvals.views.access import private, reader_of
from checkpoints.models import Run

__all__ = ["Gone", "is_fragment", "private", "reader_of", "run_or_404"]


class Gone(Http404):
    """A page that existed and is gone; the message says why. Answered with 410."""


def run_or_404(request: HttpRequest, run_id: int) -> Run:
    """Return the run, if the reader may see it."""
    found = Run.objects.visible_to(reader_of(request)).select_related("plan", "team", "started_by").filter(pk=run_id)
    run = found.first()
    if run is None:
        raise Http404("No such run")
    return run


def is_fragment(request: HttpRequest) -> bool:
    """Tell whether a page asks for a part of itself."""
    return request.headers.get("HX-Request") == "true"
