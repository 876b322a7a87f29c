"""Version 2 with an upcaster that does not say what `propose` is called now."""

from __future__ import annotations

from typing import Any

from agents import upcast

from . import two_bare


class Porter(two_bare.Porter):
    """Find the order, draft a reply, ask, send it."""

    @classmethod
    @upcast("1")
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        state["reply"] = state.pop("text", "")
        return state
