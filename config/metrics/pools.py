"""Metrics of this process's pool of PostgreSQL connections, as psycopg_pool counts them."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connections
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

MS = 1000


def collect() -> Iterator[Metric]:
    """Yield the figures of the default database's pool so far."""
    stats = connections["default"].pool.get_stats()  # type: ignore[attr-defined]
    size = GaugeMetricFamily(
        "holdpoint_pool_connections", "Connections of this process to PostgreSQL.", labels=["state"]
    )
    for state, name in (("most", "pool_max"), ("open", "pool_size"), ("idle", "pool_available")):
        size.add_metric([state], stats.get(name, 0))
    yield size
    yield GaugeMetricFamily(
        "holdpoint_pool_waiting", "Requests that wait for a connection now.", stats.get("requests_waiting", 0)
    )
    yield CounterMetricFamily(
        "holdpoint_pool_requests", "Times that a connection was asked for.", stats.get("requests_num", 0)
    )
    yield CounterMetricFamily(
        "holdpoint_pool_wait_seconds", "Seconds waited for one.", stats.get("requests_wait_ms", 0) / MS
    )
    yield CounterMetricFamily(
        "holdpoint_pool_timeouts", "Times that none came in time.", stats.get("requests_errors", 0)
    )
