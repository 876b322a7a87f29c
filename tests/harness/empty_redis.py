"""The process's own Redis as tests of doorbells need it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    """This process's Redis, empty, with no older run due."""
    from checkpoints.models import Run  # conftests import this before Django is set up

    Run.objects.live().update(status="cancelled")
    client = redis.Redis.from_url(redis_url)
    client.flushall()
    yield client
    Run.objects.live().update(status="cancelled")
    client.flushall()
