"""Takes bulk decisions, and reads how far each has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from approvals.decisions.submission import COMMENT_LIMIT, NO_THEN, Submission, Then, Verdict, check_key
from approvals.errors import Invalid, NotAllowed, Problem, make_problem
from approvals.gates.lists.queues import ReaderReach
from approvals.models import BulkItem, BulkOrder, Decision, Gate
from approvals.policy.bulk import MOST
from checkpoints.postgresql.prepared_rows import insert_rows
from checkpoints.values import digests

STOPPED = timedelta(seconds=10)  # without a move, which a process that works on an order makes every second
USED = "/key"  # the fault of a form whose key has an order of other content
UNLOOKED = "second_look"  # the part of the form that an approval has to tick


class BulkChoice(NamedTuple):
    """One gate of a bulk decision as it was on the list."""

    gate: int
    seen: bytes
    shown: str = ""


@dataclass(frozen=True, kw_only=True)
class BulkSubmission:
    """A sent bulk decision: one verdict and one reason for all of these gates."""

    key: str
    verdict: str
    gates: Sequence[BulkChoice]
    comment: str = ""
    then: str = ""  # of a rejection
    second_look: bool = False  # they looked at each of the list, which an approval asks for


@dataclass(frozen=True, kw_only=True)
class BulkResult:
    """The state of one gate of a bulk decision."""

    item: BulkItem
    gate: Gate | None  # None where the sender may not see it
    decision: Decision | None

    @property
    def state(self) -> str:
        """Return decided, refused or waiting."""
        return "decided" if self.decision else "refused" if self.item.code else "waiting"


@dataclass(frozen=True, kw_only=True)
class BulkProgress:
    """The state of a bulk decision."""

    order: BulkOrder
    results: Sequence[BulkResult]

    def number(self, state: str) -> int:
        """Count the gates of this state."""
        return sum(each.state == state for each in self.results)

    @property
    def decided(self) -> int:
        return self.number("decided")

    @property
    def refused(self) -> int:
        return self.number("refused")

    @property
    def waiting(self) -> int:
        return self.number("waiting")

    @property
    def done(self) -> int:
        return len(self.results) - self.waiting

    @property
    def stopped(self) -> bool:
        """Tell whether nobody works on it any more, though gates are left: its process ended in the middle."""
        under_way = self.waiting and self.order.finished_at is None
        return bool(under_way) and timezone.now() - self.order.moved_at > STOPPED


def take(sent: BulkSubmission, *, by: User) -> BulkOrder:
    """Store a bulk decision, which `carrying_out` then carries out; the same person's same key gives the same one.

    Raises NotAllowed for a person who may decide no gate, and Invalid for what no such decision can be, or a key that
    was used for another.
    """
    if not ReaderReach.of(by).decides:
        raise NotAllowed
    check_key(Submission(seen=b"", key=sent.key))
    if faults := _faults(sent):
        raise Invalid(faults)
    gates = [[each.gate, each.seen.hex()] for each in sent.gates]
    content = {"verdict": sent.verdict, "then": sent.then, "comment": sent.comment, "gates": gates}
    request = digests.of_value(content)
    with transaction.atomic(durable=True):
        order, made = BulkOrder.objects.get_or_create(
            user=by, key=sent.key,
            defaults={
                "verdict": sent.verdict, "then": sent.then, "request": request,
                "comment": sent.comment.encode(errors="replace"),
            },
        )  # fmt: skip
        if made:
            insert_rows(
                [
                    BulkItem(order=order, gate_id=each.gate, number=place, seen=each.seen, shown=each.shown)
                    for place, each in enumerate(sent.gates)
                ]
            )
    if bytes(order.request) != request:
        told = "This form was sent before with other content. What that decided counts; send again for the rest."
        raise Invalid([make_problem(told, pointer=USED)])
    order.refresh_from_db()
    return order


def _faults(sent: BulkSubmission) -> list[Problem]:
    faults = []
    if sent.verdict not in (Verdict.APPROVE, Verdict.REJECT):
        faults.append(make_problem("Choose approve or reject for all of these.", pointer="/verdict"))
    if not sent.gates:
        faults.append(make_problem("Select at least one gate.", pointer="/gates"))
    if len(sent.gates) > MOST or len({each.gate for each in sent.gates}) < len(sent.gates):
        faults.append(make_problem(f"Select at most {MOST} gates, each once.", pointer="/gates"))
    if not sent.comment.strip():
        faults.append(make_problem("Write why you decide these together.", pointer="/comment"))
    if len(sent.comment) > COMMENT_LIMIT:
        faults.append(make_problem(f"Write at most {COMMENT_LIMIT:,} characters.", pointer="/comment"))
    if sent.verdict == Verdict.REJECT and sent.then not in Then.values:
        faults.append(make_problem(NO_THEN, pointer="/then"))
    if sent.verdict == Verdict.APPROVE and not sent.second_look:
        told = "Look at each gate of the list, tick that you did, and send again."
        faults.append(make_problem(told, pointer=f"/{UNLOOKED}"))
    return faults


def key_of(order: BulkOrder, gate: int) -> str:
    """Return the key under which an order decides a gate."""
    return f"bulk:{order.pk}:{gate}"


def decided(order: BulkOrder) -> set[int]:
    """Return the gates that an order has decided so far."""
    made = Decision.objects.filter(user=order.user_id, gate__in=order.items.values("gate_id"))
    return {each.gate_id for each in made if each.key == key_of(order, each.gate_id)}


def progress(order: BulkOrder, *, reader: User) -> BulkProgress:
    """Read how far an order has come, with those of its gates that the reader may see; three statements."""
    items = list(order.items.order_by("number"))
    numbers = [item.gate_id for item in items]
    seen = Gate.objects.visible_to(reader).filter(pk__in=numbers)
    seen = seen.select_related("run__plan", "policy", "team", "outcome__proposal")
    gates = {gate.pk: gate for gate in seen}
    keys = [key_of(order, number) for number in numbers]
    made = Decision.objects.filter(user=order.user_id, gate__in=numbers, key__in=keys)
    decisions = {each.gate_id: each for each in made if each.key == key_of(order, each.gate_id)}
    results = [
        BulkResult(item=item, gate=gates.get(item.gate_id), decision=decisions.get(item.gate_id)) for item in items
    ]
    return BulkProgress(order=order, results=results)


def touch(order: BulkOrder, **columns: Any) -> None:
    """Note that somebody works on an order, and give it these columns."""
    BulkOrder.objects.filter(pk=order.pk).update(moved_at=Now(), **columns)
