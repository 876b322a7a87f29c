"""Messages as the notifier builds them, with an agent that tries what it can."""

from __future__ import annotations

from typing import Any

from approvals.notifications.channel import Address
from approvals.notifications.message import Fact, Kind, Message, Section

LINK = "https://holdpoint.example/gates/42/"
HOSTILE = "<!channel> *pay* <https://evil.example|here> & [click](https://evil.example) :tada: {{DATE(2020-01-01)}}"


def asked(**more: Any) -> Message:
    """A gate opened."""
    said: dict[str, Any] = {
        "kind": Kind.ASKED, "subject": "Decide: Refund €1,284.00", "title": "Refund €1,284.00",
        "reason": "You may decide this.", "facts": (Fact("Amount", "€1,284.00"), Fact("Risk", "High")),
        "sections": (Section("Pay a refund", (Fact("To", "Marit Ellery"),)),),
        "link": LINK, "settings_link": "https://holdpoint.example/notifications/", "button": "Open the request",
        "gate": 42, "thread": "gate-42",
    }  # fmt: skip
    return Message(**(said | more))


def decided(**more: Any) -> Message:
    """It ended."""
    return asked(
        **({"kind": Kind.DECIDED, "subject": "Decided: Refund €1,284.00", "ended": "Approved by Ann Okafor."} | more)
    )


def hostile() -> Message:
    """Every text is an agent's."""
    facts = tuple(Fact(HOSTILE, HOSTILE) for _ in range(23))
    return asked(
        subject=HOSTILE * 3, title=HOSTILE, facts=facts, sections=(Section(HOSTILE, facts),), reason=HOSTILE * 40
    )


def address(channel: str, value: str, **more: Any) -> Address:
    return Address(channel=channel, value=value, label="tests", **({"team": 1} | more))
