"""In the place of a harbour office: it books a key once, and keeps what it did for as long as the process lives."""

from __future__ import annotations

from dataclasses import dataclass, field

BERTHS = {"North 1": 80, "North 2": 45, "Quay 7": 120}  # name -> the longest vessel in metres
TIDES = ("05:40", "18:05")


@dataclass
class Office:
    """The office's books: bookings and letters by key."""

    bookings: dict[str, str] = field(default_factory=dict)
    letters: dict[str, str] = field(default_factory=dict)

    def free(self, length: int, date: str) -> list[str]:
        """List the berths that are long enough and free."""
        taken = set(self.bookings.values())
        return [name for name, longest in BERTHS.items() if longest >= length and f"{name} on {date}" not in taken]

    def book(self, vessel: str, berth: str, date: str, key: str) -> str:
        """Book a berth, once for each key."""
        self.bookings.setdefault(key, f"{berth} on {date}")
        return f"{vessel} has {self.bookings[key]}."

    def send(self, to: str, text: str, key: str) -> str:
        """Send a letter, once for each key."""
        self.letters.setdefault(key, f"{to}: {text}")
        return f"The letter to {to} is sent."

    def tides(self, date: str) -> str:
        """Say when the water is high."""
        return f"High water on {date}: {' and '.join(TIDES)}."


OFFICE = Office()
