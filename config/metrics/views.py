"""`/metrics`, in the format that the scraper asks for."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import REGISTRY, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from .access import refusal
from .broker import BrokerMetrics
from .database import DatabaseMetrics
from .pools import PoolMetrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody reads
for collector in (DatabaseMetrics(), BrokerMetrics(), PoolMetrics()):
    REGISTRY.register(collector)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all figures."""
    refused = refusal(request)
    if refused is not None:
        return refused
    encode, media_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(REGISTRY), content_type=media_type)
