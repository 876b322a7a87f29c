"""One prune at a time in the whole database: what a test left under way is ended before the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_policies() -> Iterator[None]:
    """A test's policies count for its own runs alone."""
    from checkpoints.models import Prune, RetentionPolicy

    yield
    Prune.objects.filter(status__in=["applying", "looking", "shown"]).update(status="dropped")
    for policy in RetentionPolicy.objects.current().filter(enabled=True):
        RetentionPolicy.objects.create(agent=policy.agent, version=policy.version + 1, enabled=False)
