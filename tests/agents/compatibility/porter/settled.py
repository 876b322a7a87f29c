"""An agent with a configuration and a library."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic import BaseModel, Field

from agents import Agent, step


class Settled(Agent):
    """Says what it was configured to say."""

    name = "settled"
    libraries = ("porter-library",)

    class State(BaseModel):
        said: str = ""
        sum: Decimal = Decimal(0)

    class Config(BaseModel):
        word: str = "hello"
        limit: Decimal = Field(Decimal("10.00"), gt=0)

    @step
    def say(self) -> dict[str, Any]:
        return {"said": self.config.word}

    @step
    def count(self) -> dict[str, Any]:
        return {"sum": self.config.limit}
