"""Access to a run: for members of its team who may view runs. Anybody else gets a 404. And who asks, from where."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from approvals.views.access import private, reader_of
from checkpoints.access.permissions import PersonKind, kind_of
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement

__all__ = ["Gone", "address_of", "is_fragment", "private", "reader_of", "run_or_404"]


class Gone(Http404):
    """A page that existed and is gone; the message says why. Answered with 410."""


def run_or_404(request: HttpRequest, run_id: int) -> Run:
    """Return the run, if the reader may see it."""
    reader = reader_of(request)
    found = _visible(run_id, reader.pk, kind=kind_of(reader))
    if not found:
        raise Http404("No such run")
    return found[0]


@prepared_statement
def _visible(run: Any, reader: Any, *, kind: PersonKind) -> QuerySet[Run]:
    """Read a run, if the reader may see it."""
    return Run.objects.visible_to(kind.person(reader)).select_related("plan", "team", "started_by").filter(pk=run)


def is_fragment(request: HttpRequest) -> bool:
    """Tell whether a page asks for a part of itself."""
    return request.headers.get("HX-Request") == "true"


def address_of(request: HttpRequest) -> str:
    """Return the address that a request comes from: of IPv6 the /64 network, which is what one household gets."""
    words = str(request.META.get("REMOTE_ADDR", ""))
    with suppress(ValueError):
        found = ipaddress.ip_address(words)
        if isinstance(found, ipaddress.IPv6Address):
            return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return words
