"""Says in plain English who has to approve: "Two of Finance, then one of Legal. Each confirms who they are."."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import Group, User
from django.utils.text import capfirst

from approvals.english import join_names
from approvals.models import Gate, Policy
from approvals.policy.requirements import Requirements, Role, Rule, Stage
from approvals.policy.tally import Tally, first_stage
from checkpoints.actors import of_user
from checkpoints.admin.durations import spell_duration

NUMBERS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ENDS = {
    "approve": "it is approved",
    "escalate": "the next group is asked",
    "expire": "it expires",
    "stop": "the run stops",
    "rollback": "the run stops and is rolled back",
}


@dataclass(frozen=True)
class Names:
    """The names of teams and people by their ids."""

    teams: Mapping[int, str]
    people: Mapping[int, str]

    @classmethod
    def of(cls, policy: Policy) -> Names:
        """Read the names of everybody whom a policy may ask."""
        return cls(
            {each.pk: each.name for each in policy.reviewers}, {each.pk: of_user(each).name for each in policy.named}
        )

    @classmethod
    def at(cls, gate: Gate) -> Names:
        """Read the names of everybody whom a policy may ask at this gate."""
        return cls({each.pk: each.name for each in gate.reviewers}, cls.of(gate.policy).people)

    def any_of(self, role: Role) -> str:
        """Write `Finance or Mira Sandoval`."""
        groups = sorted(self.teams.get(each, "a deleted team") for each in role.teams)
        people = sorted(self.people.get(each, "a deleted account") for each in role.people)
        return " or ".join([*groups, *people]) or "nobody"


def role(asked: Role, names: Names) -> str:
    """Write `two of Finance`, or for a person alone their name."""
    if asked.quorum == 1 and not asked.teams and len(asked.people) == 1:
        return names.any_of(asked)
    return f"{number(asked.quorum)} of {names.any_of(asked)}"


def stage(asked: Stage, names: Names) -> str:
    """Write `one of Finance and one of Legal`."""
    return join_names(role(each, names) for each in asked.roles)


def chain(stages: Sequence[Stage], names: Names) -> str:
    """Write `Two of Finance, then one of Legal`."""
    return capfirst(", then ".join(stage(each, names) for each in stages))


def requirements(needs: Requirements, names: Names) -> str:
    """Write all of it: `Two of Finance, then one of Legal. Each confirms who they are.`."""
    said = [chain(needs.stages, names)]
    if needs.step_up:
        said.append("Each confirms who they are")
    if needs.second_look:
        said.append("Each looks a second time")
    return " ".join(f"{each}." for each in said)


def why(needs: Requirements, *, edited: bool) -> list[str]:
    """Say which rules count, and which could not be evaluated and therefore count beside what follows.

    `edited`: somebody changed what was asked, so that no rule would have approved it as it is.
    """
    if needs.sampled and not edited:
        rules = join_names(f"the rule “{each}”" for each in needs.rules)
        return [f"A sample: {rules} would have approved this by itself."]
    unclear = [
        (f"The rule “{rule}” could not be evaluated ({why}), so the strictest that it may ask is required.")
        for rule, why in needs.unclear
    ]
    counted = [f"“{each}”" for each in needs.rules if each not in dict(needs.unclear)]
    if not counted:
        return unclear
    words = f"By the rule {join_names(counted)}." if len(counted) == 1 else f"By the rules {join_names(counted)}."
    return [words, *unclear]


def policy_lines(own: Requirements, rules: Sequence[Rule], names: Names) -> list[str]:
    """Describe a policy: a sentence for each rule, in their order, and one for what it asks elsewhere."""
    said = [f"“{rule.name}”, where {' '.join(rule.when.split())}: {_of_rule(rule, own, names)}" for rule in rules]
    rest = requirements(own, names)
    return [*said, f"Otherwise: {rest}" if said else rest]


def asked_at_all(needs: Requirements, names: Names) -> str:
    """Write `requirements`, and before it that people are only asked where a rule does not approve by itself."""
    said = ["Approved automatically. Where people are asked all the same:"] if needs.auto else []
    return " ".join([*said, requirements(needs, names)])


def _of_rule(rule: Rule, own: Requirements, names: Names) -> str:
    needs = rule.applied(own)
    said = [asked_at_all(needs, names)]
    if needs.risk:
        said.append(f"The risk is at least {needs.risk}.")
    if "deadline" in rule.require and needs.deadline is not None:
        said.append(f"Within {spell_duration(timedelta(seconds=needs.deadline))}.")
    if "on_expiry" in rule.require:
        said.append(f"After the deadline: {_ENDS[needs.on_expiry]}.")
    return " ".join(said)


def next_asked(count: Tally, names: Names) -> str:
    """Say who is needed now, and who later: `Now one of Finance. Then one of Legal.`; "" where nobody is."""
    if not count.left:
        return ""
    now = f"Now {stage(Stage(roles=tuple(count.needed)), names)}"
    then = [f"Then {stage(each, names)}" for each in count.later]
    return " ".join(f"{each}." for each in [now, *then])


def then_asked(count: Tally, names: Names) -> str:
    """Say who is needed after a vote: `Still needed: one of Finance, then one of Legal`; "" where nobody is."""
    if not count.left:
        return ""
    stages = [Stage(roles=tuple(count.needed)), *count.later]
    return f"Still needed: {', then '.join(stage(each, names) for each in stages)}"


def why_not_now(count: Tally, person: int, teams: Iterable[int], gate: Gate, *, approves: bool) -> str:
    """Say to a reviewer whom this proposal does not ask, or not now, who has to approve; "" to those who may decide.

    Whoever `approves` completes a place of the reached stage, or agrees to what is complete; to reject or edit, a role
    in it or an earlier one is enough.
    """
    there = set(teams)
    first = first_stage(count.requirements, person, there)
    if first is None:
        return f"By this policy others decide this one: {chain(count.requirements.stages, Names.at(gate))}."
    if first > count.stage:
        return f"Your turn comes later. First {_now(count, gate)} must approve."
    if approves and count.left and not count.asks(person, there):
        return f"Your approval would complete nothing now. {capfirst(_now(count, gate))} must approve."
    return ""


def _now(count: Tally, gate: Gate) -> str:
    return stage(Stage(roles=tuple(count.needed)), Names.at(gate))


def awaited(gates: Sequence[Gate]) -> dict[int, str]:
    """Say whose approval each of these gates needs now, where its policy has roles: `Legal or Mira Sandoval`.

    Two statements, none where no gate has.
    """
    ids = {each for gate in gates for each in gate.awaits}
    if not ids:
        return {}
    groups = {each.pk: each.name for each in Group.objects.filter(pk__in=[each for each in ids if each > 0])}
    people = User.objects.filter(pk__in=[-each for each in ids if each < 0])
    names = Names(groups, {each.pk: of_user(each).name for each in people})
    asked = {gate.pk: gate.awaits for gate in gates if gate.awaits}
    roles = {
        pk: Role(teams=tuple(each for each in ids if each > 0), people=tuple(-each for each in ids if each < 0))
        for pk, ids in asked.items()
    }
    return {pk: names.any_of(role) for pk, role in roles.items()}


def number(count: int) -> str:
    """Write a small number as a word."""
    return NUMBERS[count] if 0 < count < len(NUMBERS) else str(count)
