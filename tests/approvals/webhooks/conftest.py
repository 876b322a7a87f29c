"""Receivers on this machine, which the settings of these tests allow, and short pauses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .receiver import Receiver


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = ["127.0.0.0/8"]
    settings.HOLDPOINT_WEBHOOKS_TIMEOUT = 5.0
    settings.HOLDPOINT_WEBHOOKS_RETRIES = [5.0, 60.0, 3600.0]


@pytest.fixture
def new_receiver() -> Iterator[Callable[..., Receiver]]:
    """Return new_receiver(secure=False, port=0) -> Receiver; stopped at the end."""
    made: list[Receiver] = []

    def new(**options: Any) -> Receiver:
        made.append(Receiver(**options))
        return made[-1]

    yield new
    for each in made:
        each.stop()


@pytest.fixture
def receiver(new_receiver: Callable[..., Receiver]) -> Receiver:
    return new_receiver()
