"""What a gate's page says where the same was rejected before."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from approvals.models import Gate

TITLES = (
    "",
    gettext_lazy("First attempt"),
    gettext_lazy("Second attempt"),
    gettext_lazy("Third attempt"),
    gettext_lazy("Fourth attempt"),
    gettext_lazy("Fifth attempt"),
    gettext_lazy("Sixth attempt"),
    gettext_lazy("Seventh attempt"),
    gettext_lazy("Eighth attempt"),
    gettext_lazy("Ninth attempt"),
    gettext_lazy("Tenth attempt"),
)


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
    title = str(TITLES[gate.attempt]) if gate.attempt < len(TITLES) else ""
    title = title or _("%(number)sth attempt") % {"number": gate.attempt}
    often = ngettext("%(count)s time", "%(count)s times", rejected) % {"count": rejected}
    times = {1: _("once"), 2: _("twice")}.get(rejected, often)
    return Attempt(title, times, last, heard)
