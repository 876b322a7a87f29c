"""What the examples' states have in common: the base class of their types, and how older ones are taken over."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from agents import upcast


class Noun(BaseModel):
    """What is not named here does not get in."""

    model_config = ConfigDict(extra="forbid")


def keep_state(since: str) -> Any:
    """Return an upcaster that takes over the runs of an older version which saved the same fields."""

    def keep(agent: type[Any], state: dict[str, Any]) -> dict[str, Any]:
        return state

    return classmethod(upcast(since)(keep))
