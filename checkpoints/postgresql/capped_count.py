"""Capped counts: to people 1,412 and 999+ are the same, so no page counts a million rows to show one number."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 999


@dataclass(frozen=True, slots=True)
class Capped:
    """A count up to a bound; reads as `12` or `999+` and is false for 0."""

    number: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.number}+" if self.more else str(self.number)

    def __bool__(self) -> bool:
        return self.number > 0
