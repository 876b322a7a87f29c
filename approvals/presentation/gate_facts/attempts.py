"""Describes the earlier rejections of what a gate asks again, or of another request about the same resource."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from num2words import num2words  # type: ignore[import-untyped]

from approvals.english import count_of
from approvals.models import Gate, Outcome
from approvals.presentation.text.exact_call import AT_GATE

from .provenance import Provenance

IN_WORDS = 10  # highest attempt whose number is written as a word
LOOKED_AT = 50  # closed gates about a resource, the newest first


@dataclass(frozen=True, kw_only=True)
class GateAttempt:
    """An earlier rejection: of the same, of what this run asked here before, or of another request for its resource."""

    how: str  # same, run or resource
    gate: Gate | None  # the last rejected gate, with its outcome; None where the reader may not see it
    heard: bool  # whether the reader sees the team's runs, and so the words of decisions
    times: str = ""  # how often, in words
    title: str = ""  # of what the run asks again: its number

    @property
    def by(self) -> str:
        return self.gate.outcome.by_name or self.gate.outcome.by if self.gate else ""

    @property
    def reason(self) -> str:
        """Return the words of the last rejection; "" where the reader may not see them."""
        return self.gate.outcome.words if self.gate and self.heard else ""

    @property
    def amount(self) -> str:
        return Provenance.of(self.gate).amount(self.gate.asked, masked=AT_GATE) if self.gate else ""


def of_gate(gate: Gate, *, reader: User, heard: bool) -> GateAttempt | None:
    """Return the earlier rejection that the reader of a gate is told of; None where there is none."""
    seen = Gate.objects.visible_to(reader).select_related("outcome", "run__plan")
    rejected = gate.attempt - 1
    if not rejected:
        return _of_resource(gate, reader=reader, heard=heard)
    last = seen.filter(pk=gate.rejected_before_id or 0).first()
    same = last is None or not set(last.likeness).isdisjoint(gate.likeness)
    number = num2words(gate.attempt, to="ordinal" if gate.attempt <= IN_WORDS else "ordinal_num", lang="en")
    often = count_of(rejected, "time")
    return GateAttempt(
        how="same" if same else "run", gate=last, heard=heard, times={1: "once", 2: "twice"}.get(rejected, often),
        title=f"{number.capitalize()} attempt",
    )  # fmt: skip


def _of_resource(gate: Gate, *, reader: User, heard: bool) -> GateAttempt | None:
    if not gate.resource or gate.status != Gate.Status.OPEN:
        return None
    about = Gate.objects.filter(team=gate.team_id, resource=gate.resource).exclude(status=Gate.Status.OPEN)
    latest = about.order_by("-pk").values("pk")[:LOOKED_AT]
    seen = Gate.objects.visible_to(reader).filter(pk__in=latest, outcome__kind=Outcome.Kind.REJECTED)
    last = seen.select_related("outcome", "run__plan").order_by("-pk").first()
    return GateAttempt(how="resource", gate=last, heard=heard) if last else None
