"""The events of which people are told, and whom each of them names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.functional import cached_property

from checkpoints.events.event import Event
from checkpoints.values import canonical_json

from . import account

OPENED = "gate.opened"
ENDED = ("gate.closed", "gate.expired", "gate.withdrawn")
FAILED = "run.failed"
# Others may decide from now on, or by another time: those who were not told yet are told now.
HANDED = "gate.reassigned"
CHANGED = ("gate.escalated", HANDED, "gate.rescheduled")
# Events whose data names the people who hear of it: whose name was written, and whose vote counts no more;
MENTIONED = "gate.mentioned"
LAPSED = ("gate.lapsed", "gate.edited")
# or one person: to whom a gate was handed, whose claim was taken over, and who decides for somebody who is away.
TAKEN_OVER = "gate.claimed"
STANDS_IN = "delegation.made"
NAMED_BY = {HANDED: "to", TAKEN_OVER: "taken_from", STANDS_IN: "delegate"}
NOT_RUN = "gate.not_run"  # it was approved, and nothing has run
ASKS = "gate.asks"  # others are asked from now on


@dataclass(frozen=True)
class ToldEvent:
    """One event that somebody may have to hear of."""

    event: Event
    gate: int | None

    @property
    def users(self) -> list[int]:
        """Return the ids of the people whom it names."""
        kind = self.event.kind
        if kind not in (MENTIONED, *LAPSED, *NAMED_BY):
            return []
        named = [self._said.get(NAMED_BY[kind])] if kind in NAMED_BY else self._said.get("users", [])
        found = [each if isinstance(each, int) else _user(each) for each in named] if isinstance(named, list) else []
        return [each for each in found if each is not None]

    @property
    def before(self) -> list[int] | None:
        """Return whom the gate asked before it asks others, as a gate's `awaits`; None for any other event."""
        return self._said.get("before") if self.event.kind == ASKS else None

    @property
    def asks(self) -> bool:
        """Tell whether others may be asked from now on."""
        return self.event.kind in (OPENED, ASKS, *CHANGED)

    @property
    def matters(self) -> bool:
        """Tell whether somebody may have to hear of it."""
        kind, told = self.event.kind, (*ENDED, MENTIONED, *LAPSED, NOT_RUN, *account.CHANGES)
        return self.asks or kind in told or (kind == TAKEN_OVER and bool(self.users))

    @cached_property
    def _said(self) -> dict[str, Any]:
        said: dict[str, Any] = canonical_json.decode_canonical(bytes(self.event.data))
        return said

    @property
    def actor(self) -> int | None:
        """Return the id of the person who did it; None for others."""
        return _user(self.event.actor)


def told_of(event: Event) -> ToldEvent:
    """Return the event with the number of the gate that it is about."""
    kind, _, number = event.subject.partition(":")
    return ToldEvent(event, int(number) if kind == "gate" and number.isdigit() else None)


def _user(actor: object) -> int | None:
    """Return the id of the person whom an event names as "user:7"; None for others."""
    role, _, number = str(actor).partition(":")
    return int(number) if role == "user" and number.isdigit() else None
