"""Savers of one agent for a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.harness.examples import first_alone

if TYPE_CHECKING:
    from tests.clients.langgraph.savers import Made


@pytest.fixture
def make() -> Iterator[Made]:
    from tests.clients.langgraph.savers import savers  # once Django is set up

    with savers("in process") as made:
        yield made


@pytest.fixture(params=first_alone(["in process", "over HTTP"]))
def both(request: pytest.FixtureRequest, web: str) -> Iterator[Made]:
    from tests.clients.langgraph.savers import savers

    with savers(request.param, web) as made:
        yield made
