"""Deploying agents: this process knows the classes that a test names, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.agents.compatibility import SENT

Deploy = Callable[..., None]
AGENTS = ("porter", "shop", "fleet", "van")


@pytest.fixture
def deploy() -> Iterator[Deploy]:
    """Return deploy(*classes): what is registered from now on."""
    from agents.definition import registry  # Django is set up only after this file is read
    from checkpoints.models import Run

    def end_all() -> None:
        Run.objects.live().filter(plan__agent__in=AGENTS).update(status="cancelled")
        SENT.clear()

    end_all()
    yield lambda *classes: registry.know_only(registry.of_classes(classes))
    end_all()
    registry.forget()
