"""An agent whose gate says that it always asks, and does not."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

from agents import Agent, Card, gate


class Quiet(Agent):
    """Asks nothing, although its gate is annotated `-> Card`."""

    name = "quiet"

    class State(BaseModel):
        amount: int = 0

    @gate()
    def review(self, amount: int) -> Card:
        return cast(Card, cast(Any, None))
