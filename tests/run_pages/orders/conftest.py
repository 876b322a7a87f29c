"""The agents of the tests of rewinds are known, here and to the web server, so that states can be checked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import services
from tests.rewinds.conftest import _only_these_agents, ledger

__all__ = ["_only_these_agents", "ledger"]


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a web server that knows these agents."""
    port = services.free_port()
    base = f"http://127.0.0.1:{port}"
    known = {"HOLDPOINT_ORIGINS": base, "HOLDPOINT_AGENTS": "tests.rewinds.agents"}
    service = services.Service("web", services.web_command(port), tmp_path_factory.mktemp("web"), known)
    try:
        services.wait_for_http(service, f"{base}/healthz")
        yield base
    finally:
        service.kill()
