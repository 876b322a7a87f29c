"""The view of `/metrics`, in the format that the scraper asks for."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import REGISTRY, disable_created_metrics
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from . import broker, database, pools
from .access import refusal_for


class AskedMetrics(Collector):
    """The collector of metrics that are queried at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, each part in bounded time."""
        yield from database.collect()
        yield from broker.collect()
        yield from pools.collect()

    def describe(self) -> list[Metric]:
        """Return no names; without this the library would collect the metrics just to learn their names."""
        return []


disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody reads
REGISTRY.register(AskedMetrics())


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics."""
    refused = refusal_for(request)
    if refused is not None:
        return refused
    encode, media_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(REGISTRY), content_type=media_type)
