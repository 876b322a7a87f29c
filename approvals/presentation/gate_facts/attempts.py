"""Describes the earlier rejections of what a gate asks again."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from num2words import num2words  # type: ignore[import-untyped]

from approvals.models import Gate

IN_WORDS = 10  # highest attempt whose number is written as a word


@dataclass(frozen=True)
class GateAttempt:
    """The number of an attempt, and how the last one ended."""

    title: str
    times: str  # how often the same was rejected, in words
    gate: Gate | None  # the last rejected gate, with its outcome; None where the reader may not see it
    heard: bool  # whether the reader sees the team's runs, and so the words of decisions

    @property
    def by(self) -> str:
        return self.gate.outcome.by_name or self.gate.outcome.by if self.gate else ""

    @property
    def reason(self) -> str:
        """Return the words of the last rejection; "" where the reader may not see them."""
        return self.gate.outcome.words if self.gate and self.heard else ""


def of_gate(gate: Gate, *, reader: User, heard: bool) -> GateAttempt | None:
    """Return the attempt that this gate is; None at the first attempt."""
    rejected = gate.attempt - 1
    if not rejected:
        return None
    seen = Gate.objects.visible_to(reader).select_related("outcome")
    last = seen.filter(pk=gate.rejected_before_id or 0).first()
    number = num2words(gate.attempt, to="ordinal" if gate.attempt <= IN_WORDS else "ordinal_num", lang="en")
    title = _("%(number)s attempt") % {"number": number.capitalize()}
    often = ngettext("%(count)s time", "%(count)s times", rejected) % {"count": rejected}
    times = {1: _("once"), 2: _("twice")}.get(rejected, often)
    return GateAttempt(title, times, last, heard)
