"""What people do to a refund, from the mail to the end: each ends with one payment that stands, or none."""

from __future__ import annotations

import random
from collections.abc import Callable

from .crashed_run import Case

MAILS = ("01", "03", "06")  # of orders that are large enough for many small refunds
Flow = Callable[[Case, random.Random], None]


def paid_again(case: Case, rng: random.Random) -> None:
    """Paid, sent back with another amount and paid again, the reason edited and paid a third time."""
    case.start("refunds", rng.choice(MAILS))
    case.approve(amount(rng, 4))
    case.has_ended("completed")
    case.rewind("propose", feedback=f"make it {amount(rng, 3)}")
    case.decide()
    case.has_ended("completed")
    case.edit("ask_facts", "/facts/reason", "goodwill")
    case.approve(amount(rng, 2))
    case.has_ended("completed")


def unchanged(case: Case, rng: random.Random) -> None:
    """Sent back, paid, and sent through everything once more with nothing changed: what was done is taken as it is."""
    paid = amount(rng, 3)
    case.start("refunds", rng.choice(MAILS))
    case.decide("reject", then="back", back_to="propose", comment="with shipping")
    case.approve(paid)
    case.has_ended("completed")
    case.rewind("find_order")
    if case.run.status == "waiting":
        case.approve(paid)
    case.has_ended("completed")


def stopped(case: Case, rng: random.Random) -> None:
    case.start("refunds", rng.choice(MAILS))
    case.approve(amount(rng, 4))
    case.has_ended("completed")
    case.rewind("propose", feedback=f"make it {amount(rng, 3)}")
    case.decide("reject", then="stop", comment="I will ring them")
    case.has_ended("cancelled")


def judged(case: Case, rng: random.Random) -> None:
    """A proposal is refused and repaired, paid, sent back, refused and repaired again."""
    case.start("judged", rng.choice(MAILS))
    case.decide()
    case.has_ended("completed")
    case.rewind("propose", feedback="make it 7.00")
    case.approve(amount(rng, 2))
    case.has_ended("completed")


def amount(rng: random.Random, whole: int) -> str:
    return f"{whole}.{rng.randrange(100):02}"


# Each point is crashed at in one of the flows that pass it, in the order in which that does.
FLOWS: dict[Flow, tuple[str, ...]] = {
    stopped: ("after_claim", "before_gate", "after_effect", "before_settle", "after_undo"),
    judged: ("before_step", "before_save", "before_repair", "after_repair", "after_gate", "before_undo"),
    unchanged: ("after_step", "after_save", "before_outcome", "before_rewind", "before_adopt"),
    paid_again: ("after_commit", "after_outcome", "after_intent", "after_rewind", "after_undo_intent"),
}
