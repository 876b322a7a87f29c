"""Version 2 with its upcaster."""

from __future__ import annotations

from typing import Any

from agents import upcast

from . import two_bare


class Shop(two_bare.Shop):
    """Ask, buy, look at what was bought, ask again."""

    @classmethod
    @upcast("1")
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        state["slip"], state["papers"] = state.pop("receipt", ""), state.pop("bills", [])
        return state
