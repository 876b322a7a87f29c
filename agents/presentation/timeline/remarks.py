"""A line under a row, in our words and in another's, kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Remark:
    """Our words, then a moment, then what another said (untrusted); or any of them alone."""

    text: str = ""
    quote: str = ""
    at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.text or self.quote or self.at)
