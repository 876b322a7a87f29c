"""The attacking agent, known here and to the servers that are started from here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import services

AGENTS = "tests.deception.tricks"


@pytest.fixture(autouse=True)
def tricks(settings: Any) -> Iterator[None]:
    from agents.definition import registry

    settings.HOLDPOINT_AGENTS = [AGENTS]
    registry.forget()
    yield
    registry.forget()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a real web server that knows the attacking agent."""
    base = f"http://127.0.0.1:{(port := services.free_port())}"
    env = {"HOLDPOINT_ORIGINS": base, "HOLDPOINT_AGENTS": AGENTS}
    service = services.Service("web", services.web_command(port), tmp_path_factory.mktemp("web"), env)
    try:
        services.wait_for_http(service, f"{base}/healthz")
        yield base
    finally:
        service.kill()
