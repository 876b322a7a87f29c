"""Version 2 with its upcaster."""

from __future__ import annotations

from typing import Any

from agents import upcast

from . import two_bare


class Porter(two_bare.Porter):
    """Find the order, draft a reply, ask, send it."""

    @classmethod
    @upcast("1", steps={"propose": "draft"})
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        state["reply"] = state.pop("text", "")
        return state
