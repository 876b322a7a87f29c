"""The assistant's world: a folder of its own, and a server in the model's place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .endpoint import KEY, Endpoint, running


@pytest.fixture(scope="module")
def shared_endpoint() -> Iterator[Endpoint]:
    with running() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(shared_endpoint: Endpoint) -> Endpoint:
    """The model's server, with nothing scripted and nothing asked."""
    shared_endpoint.script = []
    shared_endpoint.faults.clear()
    shared_endpoint.requests.clear()
    shared_endpoint.keys.clear()
    return shared_endpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "desk"
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def assistant(settings: Any, endpoint: Endpoint, folder: Path) -> Iterator[None]:
    from agents.definition import registry  # Django is set up only after this file is read

    settings.HOLDPOINT_AGENTS = ["agents.examples.assistant"]
    settings.OPENAI_BASE_URL = endpoint.url
    settings.OPENAI_API_KEY = KEY
    settings.HOLDPOINT_ASSISTANT_FOLDER = str(folder)
    registry.forget()
    yield
    registry.forget()
