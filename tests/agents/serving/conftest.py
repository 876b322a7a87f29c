from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from tests.harness.known_agents import sample_agents

__all__ = ["sample_agents"]


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    """This process's Redis, empty, with no older run due."""
    from checkpoints.models import Run  # Django is set up only after this file is read

    Run.objects.live().update(status="cancelled")
    client = redis.Redis.from_url(redis_url)
    client.flushall()
    yield client
    Run.objects.live().update(status="cancelled")
    client.flushall()
