"""Says what a policy would have asked of the last gates, before it is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.contrib.auth.models import Group, User

from approvals.gates import automatic
from approvals.models import Gate, OwedSample, Policy
from approvals.policy import pacing, required
from approvals.policy.requirements import Requirements
from approvals.policy.rules import stage_words
from approvals.policy.rules.stage_words import Names
from approvals.policy.rules.written import Directory

from .changes import decided_by, in_force
from .lowering import asks_as_much

LAST = 200  # gates
LISTED = 20


@dataclass(frozen=True, kw_only=True)
class SimulatedGate:
    """One of the last gates, with what it needed and what it would have needed."""

    gate: Gate
    before: Requirements
    after: Requirements

    @property
    def changed(self) -> bool:
        """Tell whether something else would have been needed."""
        return _compared(self.before) != _compared(self.after)

    @property
    def milder(self) -> bool:
        """Tell whether less would have been needed."""
        return self.changed and not asks_as_much(self.after, self.before)


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The needs that a policy would have had at the last gates of its team and name, or of all names for a new one."""

    gates: Sequence[SimulatedGate]
    names: Names
    sample: int  # percent of the automatic approvals that people would have decided all the same
    warnings: Sequence[str] = ()  # of rules that will stay unclear
    owed: int = 0  # drawn gates that nobody decided: so many of the next ones are shown in their place

    @property
    def changed(self) -> list[SimulatedGate]:
        """List those of which something else would have been asked."""
        return [each for each in self.gates if each.changed]

    @property
    def sentences(self) -> list[str]:
        """Write it: `31 of the last 200 gates would have asked two people.`."""
        if not self.gates:
            return ["No gate has been opened that this can be compared with.", *self.warnings]
        asked = Counter(each.after.slots for each in self.gates if not each.after.auto)
        said = [self._automatic, *self._owed] if self._automatic else []
        for people, count in sorted(asked.items()):
            who = "one person" if people == 1 else f"{stage_words.number(people)} people"
            said.append(f"{count} of the last {len(self.gates)} gates would have asked {who}.")
        milder = sum(each.milder for each in self.changed)
        other = len(self.changed) - milder
        if milder:
            said.append(f"{milder} would have needed less than was asked.")
        if other:
            said.append(f"{other} would have needed more, or other people.")
        if not self.changed:
            said.append("Nothing else than was asked.")
        return [*said, *self.warnings]

    @property
    def _automatic(self) -> str:
        """Say how many gates a rule would have approved by itself; "" for none."""
        count = sum(each.after.auto for each in self.gates)
        words = f"A rule would have approved {count} of the last {len(self.gates)} gates without asking anybody"
        but = f", except for a sample of {self.sample} percent" if self.sample else ""
        return f"{words}{but}." if count else ""

    @property
    def _owed(self) -> list[str]:
        """Say how many of the next gates take the place of drawn ones; nothing for none."""
        words = (
            "People decide the next one too: a sample was withdrawn or expired undecided."
            if self.owed == 1
            else f"People decide the next {self.owed} too: as many samples were withdrawn or expired undecided."
        )
        return [words] if self.owed else []

    def rows(self) -> list[tuple[Gate, str, str]]:
        """List (gate, what it needed, what it would have needed) of the first gates that would have changed."""
        words = partial(stage_words.asked_at_all, names=self.names)
        return [(each.gate, words(each.before), words(each.after)) for each in self.changed[:LISTED]]


def simulate(policy: Policy, *, groups: Iterable[Group], people: Iterable[User]) -> Simulation:
    """Compute what an unsaved policy would have asked of the last gates of its team and name. Writes nothing.

    A new name is tried on the team's gates under all names, since their programs may name it from then on.
    """
    drafted = decided_by(policy, groups, people)
    found = Gate.objects.filter(policy__team=policy.team_id, kind=Gate.Kind.REVIEW)
    found = found.filter(policy__name=policy.name) if in_force(policy) else found
    read = found.select_related("run__plan", "run__started_by", "asked_by", "policy").order_by("-pk")[:LAST]
    gates = []
    for gate in read.prefetch_related("proposals"):
        first = min(gate.proposals.all(), key=lambda each: each.number)
        gates.append(SimulatedGate(gate=gate, before=required.of(first, gate.policy), after=_asked(drafted, gate)))
    owed = OwedSample.objects.filter(team=policy.team_id, policy=policy.name).count()
    names, warnings = Directory.now().names, pacing.warnings(drafted)
    return Simulation(gates=gates, names=names, sample=drafted.auto_sample, warnings=warnings, owed=owed)


def _asked(drafted: Policy, gate: Gate) -> Requirements:
    """Return what an unsaved policy would have asked of a gate as it opened."""
    known = required.gate_facts(gate.run, gate.step, asked_by=gate.asked_by, attempt=gate.attempt)
    needs = required.asked(drafted, gate.asked, known)
    external = gate.run.plan.external
    may = automatic.offered(needs, gate.asked, kind=gate.kind, attempt=gate.attempt, external=external)
    return replace(needs, auto=may)


def _compared(needs: Requirements) -> tuple[object, ...]:
    return (needs.stages, needs.step_up, needs.second_look, needs.auto)
