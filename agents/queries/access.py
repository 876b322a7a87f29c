"""Access to a run: for members of its team who may view runs. Anybody else gets a 404."""

from __future__ import annotations

from functools import lru_cache

from django.http import Http404, HttpRequest

from approvals.views.access import private, reader_of
from checkpoints.access.permissions import Person, person
from checkpoints.models import Run
from checkpoints.postgresql.batch_query import ParameterPlace
from checkpoints.postgresql.prepared_rows import PreparedRows

_RUN, _READER = ParameterPlace(1), ParameterPlace(2)
__all__ = ["Gone", "is_fragment", "private", "reader_of", "run_or_404"]


class Gone(Http404):
    """A page that existed and is gone; the message says why. Answered with 410."""


def run_or_404(request: HttpRequest, run_id: int) -> Run:
    """Return the run, if the reader may see it."""
    reader = reader_of(request)
    found = _visible(person(reader)._replace(pk=_READER)).run(run_id, reader.pk)
    if not found:
        raise Http404("No such run")
    return found[0]


@lru_cache(1024)
def _visible(reader: Person) -> PreparedRows[Run]:
    """Build the statement that reads a run, the same for all readers of the same reach."""
    return PreparedRows(Run.objects.visible_to(reader).select_related("plan", "team", "started_by").filter(pk=_RUN))


def is_fragment(request: HttpRequest) -> bool:
    """Tell whether a page asks for a part of itself."""
    return request.headers.get("HX-Request") == "true"
