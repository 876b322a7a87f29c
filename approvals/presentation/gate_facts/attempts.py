"""What a gate's page says where the same was rejected before."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from num2words import num2words  # type: ignore[import-untyped]

from approvals.models import Gate

IN_WORDS = 10  # attempts whose number is written as a word


@dataclass(frozen=True)
class Attempt:
    """Which attempt it is, and how the last one ended."""

    title: str
    times: str  # how often it was rejected
    gate: Gate | None  # the last one that was rejected, with its outcome; None where the reader may not see it
    heard: bool  # whether the reader sees the team's runs, and so what was said at them

    @property
    def by(self) -> str:
        return self.gate.outcome.by_name or self.gate.outcome.by if self.gate else ""

    @property
    def reason(self) -> str:
        """Return why it was rejected, as far as it fits on a line."""
        return self.gate.outcome.words if self.gate and self.heard else ""


def of_gate(gate: Gate, *, reader: User, heard: bool) -> Attempt | None:
    """Return the attempt that this gate is; None at the first."""
    rejected = gate.attempt - 1
    if not rejected:
        return None
    seen = Gate.objects.visible_to(reader).select_related("outcome")
    last = seen.filter(pk=gate.rejected_before_id or 0).first()
    number = num2words(gate.attempt, to="ordinal" if gate.attempt <= IN_WORDS else "ordinal_num", lang="en")
    title = _("%(number)s attempt") % {"number": number.capitalize()}
    often = ngettext("%(count)s time", "%(count)s times", rejected) % {"count": rejected}
    times = {1: _("once"), 2: _("twice")}.get(rejected, often)
    return Attempt(title, times, last, heard)
