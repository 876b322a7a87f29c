"""Metrics from Redis: doorbells that no worker has taken yet, and the canary."""

from __future__ import annotations

from collections.abc import Iterator

import redis
from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric

from agents.definition import registry
from agents.ringing import queues
from config.messages import canary


def collect() -> Iterator[Metric]:
    """Yield the queues' lengths and the canary's age, or only that Redis does not answer within two seconds each."""
    names = [*registry.queues(), settings.CELERY_TASK_DEFAULT_QUEUE]
    try:
        lengths = queues.waiting(names)
        age = canary.age(settings.REDIS_URL)
    except redis.RedisError:
        yield _up(0)
        return
    yield _up(1)
    messages = GaugeMetricFamily(
        "holdpoint_queue_messages", "Messages that no worker has taken yet, by queue.", labels=["queue"]
    )
    for name, length in lengths.items():
        messages.add_metric([name], length)
    yield messages
    yield GaugeMetricFamily(
        "holdpoint_canary_age_seconds", "Seconds since a worker took a message of beat's; 60 is at least that.", age
    )


def _up(value: int) -> Metric:
    return GaugeMetricFamily("holdpoint_redis_up", "1 where Redis answers.", value)
