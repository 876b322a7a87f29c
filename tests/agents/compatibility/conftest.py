"""Deploying agents: this process knows the modules that a test names, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

Deploy = Callable[..., None]


@pytest.fixture
def deploy(settings: Any) -> Iterator[Deploy]:
    """Return deploy(*modules of tests.agents.compatibility.porter): what is registered from now on."""
    from agents.definition import registry  # Django is set up only after this file is read
    from checkpoints.models import Run
    from tests.agents.compatibility.porter import SENT

    def names(*modules: str) -> None:
        settings.HOLDPOINT_AGENTS = [f"tests.agents.compatibility.porter.{module}" for module in modules]
        registry.forget()

    def end_all() -> None:
        Run.objects.live().filter(plan__agent="porter").update(status="cancelled")
        SENT.clear()

    end_all()
    yield names
    end_all()
    registry.forget()


@pytest.fixture
def deploy_shop(settings: Any) -> Iterator[Deploy]:
    """Return deploy(*modules of tests.agents.compatibility.shop)."""
    from agents.definition import registry
    from checkpoints.models import Run
    from tests.agents.compatibility.shop import SENT

    def names(*modules: str) -> None:
        settings.HOLDPOINT_AGENTS = [f"tests.agents.compatibility.shop.{module}" for module in modules]
        registry.forget()

    Run.objects.live().filter(plan__agent="shop").update(status="cancelled")
    SENT.clear()
    yield names
    Run.objects.live().filter(plan__agent="shop").update(status="cancelled")
    registry.forget()
