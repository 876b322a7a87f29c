"""A line under a row, with Holdpoint's own words kept apart from somebody else's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Remark:
    """Own words, then a time, then a quote of somebody else (untrusted); or any of them alone."""

    text: str = ""
    quote: str = ""
    at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.text or self.quote or self.at)
