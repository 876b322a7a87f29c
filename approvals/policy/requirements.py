"""Requirements of a proposal to be approved: who, how many, and in which order. Pure.

A policy has its own requirements, and rules that replace parts of them. The rules are read in order, and the first that
matches counts, since its author can follow that with a finger. A rule that cannot be evaluated may match or not, so
what it asks and what would count without it are both required. With several actions, what each of them needs is
required. An edit adds what its values need, and takes nothing away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from checkpoints.values.canonical_json import decode_canonical, encode_canonical

RISKS = ("low", "medium", "high", "critical")
# From the mildest to the strictest.
ENDS = ("approve", "escalate", "expire", "stop", "rollback")


@dataclass(frozen=True, kw_only=True)
class Role:
    """So many people out of some teams and some named people."""

    quorum: int = 1
    teams: tuple[int, ...] = ()  # ids of teams
    people: tuple[int, ...] = ()  # ids of people

    def fits(self, person: int, there: Iterable[int]) -> bool:
        """Tell whether this person, who may decide in these teams, may fill the role."""
        return person in self.people or not set(self.teams).isdisjoint(there)

    def within(self, other: Role) -> bool:
        """Tell whether whoever may fill a place of this role may fill one of the other too."""
        return {*self.teams} <= {*other.teams} and {*self.people} <= {*other.people}

    def covers(self, other: Role) -> bool:
        """Tell whether whoever fills this role fills the other one too."""
        return self.within(other) and self.quorum >= other.quorum

    def alike(self, other: Role) -> bool:
        """Tell whether the same people may fill both."""
        return self.within(other) and other.within(self)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Roles that are filled in any order; the next stage begins when all of them are."""

    roles: tuple[Role, ...]


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The needs of one proposal."""

    stages: tuple[Stage, ...]
    step_up: bool = False
    second_look: bool = False  # each approver ticks that they looked again
    risk: str = ""  # the least risk that the gate shows; "" for the card's own
    deadline: int | None = None  # seconds; None: no deadline
    on_expiry: str = "expire"  # of ENDS
    auto: bool = False  # a rule approves it, without people
    sampled: bool = False  # it would, but this one is shown to people; see approvals.gates.automatic
    rules: tuple[str, ...] = ()  # names of the rules that count
    unclear: tuple[tuple[str, str], ...] = ()  # (rule, why it could not be evaluated)

    @property
    def slots(self) -> int:
        """Return how many people have to approve."""
        return sum(role.quorum for stage in self.stages for role in stage.roles)

    @property
    def staged(self) -> bool:
        """Tell whether there are several roles, so that it matters which one somebody fills."""
        return len(self.stages) > 1 or len(self.stages[0].roles) > 1

    @property
    def teams(self) -> frozenset[int]:
        """Return the ids of all teams that are asked."""
        return frozenset(each for stage in self.stages for role in stage.roles for each in role.teams)

    @property
    def people(self) -> frozenset[int]:
        """Return the ids of all people who are named."""
        return frozenset(each for stage in self.stages for role in stage.roles for each in role.people)

    def widened(self, teams: Iterable[int]) -> Requirements:
        """Return the same for people of these teams too, who may fill any role: for teams added to one gate."""
        added = set(teams)
        if not added:
            return self
        stages = [
            Stage(roles=tuple(replace(role, teams=tuple(sorted({*role.teams, *added}))) for role in stage.roles))
            for stage in self.stages
        ]
        return replace(self, stages=tuple(stages))

    def to_text(self) -> str:
        """Write them as canonical JSON, for the proposal's row."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        written = {**plain, "stages": stages_json(self.stages), "rules": list(self.rules)}
        return encode_canonical(written | {"unclear": [list(each) for each in self.unclear]}).decode()

    @classmethod
    def from_text(cls, text: str) -> Requirements:
        """Read what `to_text` wrote."""
        said = decode_canonical(text.encode())
        return cls(
            stages=stages_of(said["stages"]),
            rules=tuple(said["rules"]),
            unclear=tuple((rule, why) for rule, why in said["unclear"]),
            **{name: said[name] for name in _PLAIN},
        )


_PLAIN = ("step_up", "second_look", "risk", "deadline", "on_expiry", "auto", "sampled")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule: what it requires where its expression is true of an action."""

    name: str
    when: str
    require: Mapping[str, Any] = field(default_factory=dict)  # the parts of Requirements that it replaces, and `quorum`

    def applied(self, own: Requirements) -> Requirements:
        """Return the policy's own requirements with this rule's in their place."""
        said = {name: value for name, value in self.require.items() if name in _PLAIN}
        stages = stages_of(self.require["stages"]) if "stages" in self.require else own.stages
        if "quorum" in self.require:
            first = replace(stages[0].roles[0], quorum=self.require["quorum"])
            stages = (replace(stages[0], roles=(first, *stages[0].roles[1:])), *stages[1:])
        return replace(own, stages=stages, rules=(self.name,), **said)


class Unclear(Exception):
    """An expression that cannot be evaluated on an action; the message says why."""


Matches = Callable[[Rule, Mapping[str, Any]], bool]  # raises Unclear


def required(
    own: Requirements, rules: Sequence[Rule], actions: Sequence[Mapping[str, Any]], matches: Matches
) -> Requirements:
    """Return what a proposal needs: for each action's facts by the first rule that matches, all of it together."""
    return reduce(combined, [_of_action(own, rules, facts, matches) for facts in actions])


def _of_action(own: Requirements, rules: Sequence[Rule], facts: Mapping[str, Any], matches: Matches) -> Requirements:
    for at, rule in enumerate(rules):
        try:
            if matches(rule, facts):
                return rule.applied(own)
        except Unclear as why:
            without = _of_action(own, rules[at + 1 :], facts, matches)
            both = combined(rule.applied(own), without)
            said = f"{facts['tool']}: {why}" if len(facts.get("actions", ())) > 1 else str(why)
            return replace(both, auto=False, unclear=(*dict.fromkeys([(rule.name, said), *both.unclear]),))
    return own


def combined(one: Requirements, other: Requirements) -> Requirements:
    """Return requirements that meet both."""
    deadlines = [each for each in (one.deadline, other.deadline) if each is not None]
    return Requirements(
        stages=chain_stages(one.stages, other.stages),
        step_up=one.step_up or other.step_up,
        second_look=one.second_look or other.second_look,
        auto=one.auto and other.auto,
        sampled=one.sampled or other.sampled,
        risk=max(one.risk, other.risk, key=lambda risk: RISKS.index(risk) if risk else -1),
        deadline=min(deadlines, default=None),
        on_expiry=max(one.on_expiry, other.on_expiry, key=ENDS.index),
        rules=tuple(dict.fromkeys([*one.rules, *other.rules])),
        unclear=tuple(dict.fromkeys([*one.unclear, *other.unclear])),
    )


def chain_stages(one: tuple[Stage, ...], other: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return the stages of `one`, and after them the places of `other` that those do not cover.

    A place of `one` covers one of `other`, so that nobody is counted for two. A role of `one` that asks the same people
    is raised, where there is one.
    """
    stages, added, covered = [list(stage.roles) for stage in one], [], _covered(one, other)
    for at, stage in enumerate(other):
        left = []
        for number, role in enumerate(stage.roles):
            lacking = role.quorum - covered[at, number]
            alike = next(((roles, n) for roles in stages for n, mine in enumerate(roles) if mine.alike(role)), None)
            if lacking and alike:
                roles, n = alike
                roles[n] = replace(roles[n], quorum=roles[n].quorum + lacking)
            elif lacking:
                left.append(replace(role, quorum=lacking))
        if left:
            added.append(Stage(roles=tuple(left)))
    return (*(Stage(roles=tuple(roles)) for roles in stages), *added)


def _covered(one: tuple[Stage, ...], other: tuple[Stage, ...]) -> Counter[tuple[int, int]]:
    """Count by (stage, role) how many places of `other` those of `one` cover: as many as can be, by moving others."""
    mine = [role for stage in one for role in stage.roles]
    wanted = {(at, n): role for at, stage in enumerate(other) for n, role in enumerate(stage.roles)}
    used = [Counter[tuple[int, int]]() for _ in mine]  # of each role of `one`: whose places its own cover

    def cover(place: tuple[int, int], tried: set[int]) -> bool:
        for number, role in enumerate(mine):
            if number in tried or not role.within(wanted[place]):
                continue
            tried.add(number)
            full = used[number].total() == role.quorum
            moved = next((each for each in +used[number] if cover(each, tried)), None) if full else None
            if moved:
                used[number][moved] -= 1
            if moved or not full:
                used[number][place] += 1
                return True
        return False

    for place, role in wanted.items():
        for _ in range(role.quorum):
            cover(place, set())
    return sum(used, Counter[tuple[int, int]]())


def stages_of(said: Iterable[Mapping[str, Any]]) -> tuple[Stage, ...]:
    """Read stages as `stages_json` writes them."""
    return tuple(Stage(roles=tuple(map(_role, stage["roles"]))) for stage in said)


def _role(written: Mapping[str, Any]) -> Role:
    teams, people = tuple(written.get("groups", ())), tuple(written.get("people", ()))
    return Role(quorum=written.get("quorum", 1), teams=teams, people=people)


def stages_json(stages: Iterable[Stage]) -> list[dict[str, Any]]:
    """Return stages as JSON: `[{"roles": [{"quorum", "groups", "people"}]}]`."""
    return [{"roles": list(map(_role_json, stage.roles))} for stage in stages]


def _role_json(role: Role) -> dict[str, Any]:
    return {"quorum": role.quorum, "groups": sorted(role.teams), "people": sorted(role.people)}
