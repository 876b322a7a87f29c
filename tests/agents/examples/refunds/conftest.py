"""The outside world of the refunds agent: a real payment sandbox, and a folder that mail goes to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.harness.waiting import PATIENCE

if TYPE_CHECKING:
    from tests.harness.services import Service


class World:
    """A running sandbox, seen from outside."""

    def __init__(self, service: Service, url: str) -> None:
        self.service = service
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False)
        self.before = 0  # refunds that tests before this one made

    def refund(self, key: str, charge: str, amount: Any, currency: str = "EUR", **more: Any) -> httpx.Response:
        body = {"charge": charge, "amount": amount, "currency": currency, **more}
        return self.http.post("/refunds", json=body, headers={"Idempotency-Key": key})

    def fault(self, on: str, kind: str, **more: Any) -> None:
        self.http.post("/faults", json={"on": on, "kind": kind, **more}).raise_for_status()

    def refunds(self, order: str = "") -> list[tuple[str, str]]:
        """(amount, status) of each refund of an order, or of all, in the order in which they were made."""
        refunds = self.http.get("/ledger").json()["refunds"][self.before :]
        return [(it["amount"], it["status"]) for it in refunds if order in ("", it["charge"].removeprefix("ch_"))]

    def take_back(self) -> None:
        """Let the next test find nothing refunded: what was is cancelled, and listed no more."""
        self.http.delete("/faults").raise_for_status()
        refunds = self.http.get("/ledger").json()["refunds"]
        for refund in refunds[self.before :]:
            self.http.post(f"/refunds/{refund['id']}/cancel").raise_for_status()
        self.before = len(refunds)


@pytest.fixture(scope="module")
def start_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., World]]:
    """Return start(data=None, env={}) -> World: a sandbox process of its own."""
    from tests.harness.services import Service

    started: list[World] = []

    def start(data: Path | None = None, env: dict[str, str] | None = None) -> World:
        data = data or tmp_path_factory.mktemp("sandbox")
        command = [sys.executable, "-m", "agents.examples.sandbox", "--port", "0", "--data", str(data)]
        service = Service("sandbox", command, tmp_path_factory.mktemp("logs"), env or {})
        started.append(World(service, service.says(r"http://[\d.:]+")))
        return started[-1]

    yield start
    for world in started:
        world.http.close()
        world.service.kill()


@pytest.fixture(scope="module")
def shared_sandbox(start_sandbox: Callable[..., World]) -> World:
    return start_sandbox()


@pytest.fixture
def sandbox(shared_sandbox: World) -> Iterator[World]:
    """The module's sandbox, without a fault waiting."""
    yield shared_sandbox
    shared_sandbox.http.delete("/faults").raise_for_status()


def world_of(agents: str, *, always: bool = True) -> Any:
    """A fixture: the sandbox with which this agent and no other deals, of which each test finds nothing refunded."""

    @pytest.fixture(autouse=always)
    def world(settings: Any, sandbox: World) -> Iterator[World]:
        from agents.definition import registry

        settings.HOLDPOINT_AGENTS = [agents]
        settings.SANDBOX_URL = sandbox.url
        registry.forget()
        yield sandbox
        sandbox.take_back()
        registry.forget()

    return world


world = world_of("agents.examples.refunds", always=False)
