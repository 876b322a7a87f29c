"""Random moves of people at one gate, against the real tables; `expected` says after each what the docs promise.

After every move five answers to one question are compared: who is in whose inbox, who is told, what the gate's row
says, whose approval is taken, and who should be asked. What a vote comes to is compared as well. A world is made of its
seed. Hypothesis' own machine leaves out some moves of each world and cannot weigh them: few worlds came to an end.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from approvals.assignments import claims, reassigning
from approvals.assignments.errors import DeskRefused
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.decisions.undo_window import settle, take_back
from approvals.errors import DecisionRefused
from approvals.gates import closing, projection
from approvals.gates.reading import read
from approvals.models import Decision, Delegation, Escalation, Gate, Outcome, versions
from approvals.policy import authority
from checkpoints.actors import SYSTEM
from tests.approvals.decisions.undoing.windows import WINDOW, now, pass_window
from tests.factories import change_gate, edit_amount, make_gate, make_policy, make_team, make_user, unique, waiting
from tests.factories import decide as decide_gate
from tests.harness.examples import first_alone, trying_all
from tests.harness.undone import undone

from .expected import AskedRole, Ending, Facts, Lend, Vote

PEOPLE = ("Ann", "Bob", "Cid", "Dee", "Eve", "Fay")
TEAMS = ("Support", "Finance", "Legal")
HOUR = timedelta(hours=1)
ADDER = ("checkpoints.view_run", "approvals.add_reviewers")
MOVES: Counter[str] = Counter()
SOME_TEAMS = ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), ())  # of one person, by place
MOST_MOVES = 30
WORLDS, MANY_WORLDS = 12, 100


class Wrong(AssertionError):
    """A promise that does not hold."""


class World:
    """One gate of a policy of random stages, six people in three teams, and what they may do."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.moves: list[str] = []
        self.closed: Ending | None = None
        self.holder: User | None = None
        self.settles_for: Ending | None = None
        self.stale = False  # whether somebody came or left since the gate was last judged
        self.turn = 0
        self.begin()

    def live(self) -> None:
        """Make moves until the gate is closed, and two more; after each, compare the answers."""
        after = 0
        for _ in range(MOST_MOVES):
            self.check()
            after += not self.open
            if after > 2:
                return
            weights, moves = zip(*self.options(), strict=True)
            self.random.choices(moves, weights)[0]()
        self.check()

    def options(self) -> list[tuple[int, Callable[[], None]]]:
        """List the moves that can be made now, each with its weight."""
        found = [
            (2, self.leave), (2, self.join), (1, self.switch_off), (3, self.lend), (1, self.come_back),
            (1, self.change_policy),
        ]  # fmt: skip
        if self.open:
            found += [(8, self.vote_at_random), (8, self.approve), (2, self.undo), (3, self.claim), (3, self.add_team)]
        if self.waits:
            found += [(5, self.end_window), (2, self.let_time_pass)]
        elif self.open:
            found += [(1, self.end_without_votes)]
        return found

    def somebody(self) -> User:
        return self.random.choice(self.people)

    def team(self) -> Group:
        return self.random.choice(self.teams)

    def chance(self) -> bool:
        return self.random.random() < 0.5

    # The world

    def begin(self) -> None:
        self.teams = [make_team(name) for name in TEAMS]
        self.all_hands = make_team("All hands", may=())  # of all but the last, who has colleagues in their teams alone
        self.people = [make_user(name, *[self.all_hands] * (name != PEOPLE[-1])) for name in PEOPLE]
        places = [self.random.choice(SOME_TEAMS) for _ in PEOPLE]
        for person, there in zip(self.people, places, strict=True):
            person.groups.add(*(self.teams[each] for each in there))
        self.adder = make_user("Adder", self.teams[0], may=ADDER)  # adds reviewers, and decides nothing
        self.adder.groups.clear()
        asked = tuple(
            tuple(self.role() for _ in range(self.random.choice([1, 1, 2])))
            for _ in range(self.random.choice([1, 1, 2, 3]))
        )
        self.alone = sum(role.number for stage in asked for role in stage) == 1
        self.undoes = self.random.random() < (0.7 if self.alone else 0.3)
        said: dict[str, Any] = {"undo_window": WINDOW} if self.undoes else {}
        said |= {"escalation": [{"team": self.teams[2].pk, "after": 3600, "extend": None}]} if self.chance() else {}
        roles = [
            [{"quorum": role.number, "groups": sorted(role.teams), "people": sorted(role.people)} for role in stage]
            for stage in asked
        ]
        self.policy = make_policy(self.teams[0], name=unique("p"), stages=[{"roles": each} for each in roles], **said)
        by = self.somebody() if self.chance() else None
        self.gate = make_gate(policy=self.policy, started_by=by)
        self.facts = Facts(
            team=self.teams[0].pk, policy=self.policy.name, stages=asked,
            members={
                one.pk: frozenset(self.teams[each].pk for each in there)
                for one, there in zip(self.people, places, strict=True)
            },
            together={each.pk: frozenset({0}) for each in self.people[:-1]},
            apart=frozenset() if by is None else frozenset({by.pk}),
        )  # fmt: skip

    def role(self) -> AskedRole:
        teams = self.random.sample(self.teams, self.random.choice([0, 1, 1, 2]))
        named = [self.somebody()] if not teams or self.random.random() < 0.2 else []
        count = self.random.choice([1, 1, 2])
        return AskedRole(count, frozenset(each.pk for each in teams), frozenset(each.pk for each in named))

    @property
    def open(self) -> bool:
        return self.closed is None

    @property
    def waits(self) -> bool:
        """Tell whether a decision waits for the end of its undo window."""
        return self.open and self.settles_for is not None

    def tried(self, name: str, move: Callable[[], Any]) -> str:
        """Make a move; return "" or the code of its refusal."""
        code = ""
        try:
            move()
        except (DecisionRefused, DeskRefused) as refused:
            code = str(refused.code)
        self.note(f"{name}: {code or 'done'}")
        return code

    def note(self, move: str) -> None:
        MOVES[move.partition(":")[0].partition(" by ")[0]] += 1
        self.moves.append(move)

    def judge(self) -> None:
        """Say what the votes come to now, and note it as the product should."""
        self.facts, self.stale = self.facts.judged(), False
        end = self.facts.ending
        if end is None:
            self.settles_for = None
        elif self.undoes and self.alone:
            self.settles_for = end
        else:
            self.closed = end

    # Votes

    def vote_at_random(self) -> None:
        verdict = self.random.choice(["approve"] * 4 + ["reject", "reject", "edit"])
        self.vote(self.somebody(), verdict)

    def approve(self) -> None:
        """Have somebody who is asked approve: else most votes of a world would be refused."""
        facts = self.facts.judged()
        if (asked := [one for one in self.people if facts.asked(one.pk)]) and not self.holder:
            self.vote(self.random.choice(asked), "approve")

    def vote(self, one: User, verdict: str) -> None:
        facts, then = self.facts.judged(), self.random.choice(["stop", "back"])
        claimed = self.holder is not None and self.holder != one
        mine = [vote for vote in facts.votes if one.pk in (vote.person, vote.authority)]
        said: dict[str, Any] = {"second_look": True}
        if verdict == "edit":
            said["arguments"] = edit_amount(self.gate, f"{self.random.randint(1, 900)}.00")
        elif verdict == "reject":
            said["then"] = then
        before = now(self.gate)
        code = self.tried(f"{verdict} by {one.first_name}", lambda: decide_gate(self.gate, one, verdict, **said))
        free = replace(facts, votes=tuple(vote for vote in facts.votes if vote not in mine))
        rejects = verdict == "reject"
        again = any(vote.rejects == rejects for vote in mine) and verdict != "edit"
        if claimed or again or (not rejects and free.ending and free.ending.kind == "rejected"):
            allowed = False
        elif verdict == "approve":
            allowed = free.asked(one.pk) or (free.ending is not None and free.may_say(one.pk))
        else:
            allowed = free.may_say(one.pk)
        if allowed == bool(code):
            raise Wrong("a vote is refused that should be taken" if code else "a vote is taken that should not be")
        if code:
            self.look_over()
            return
        made = Decision.objects.filter(gate=self.gate, user=one).latest("pk")
        if self.holder == one:
            self.holder = None
        kept = free.votes if verdict != "edit" else tuple(vote for vote in free.votes if vote.rejects)
        was = self.settles_for
        self.facts = replace(free, votes=(*kept, Vote(one.pk, made.authority, rejects, then if rejects else "")))
        self.judge()
        settles = now(self.gate).settles_at
        another = self.settles_for and was and self.settles_for != was
        if another and settles and before.settles_at and settles - timezone.now() < WINDOW / 2:
            raise Wrong(f"another end takes effect without a window of its own: {was} -> {self.settles_for}")

    def undo(self) -> None:
        one = self.somebody()
        mine = [vote for vote in self.facts.votes if vote.person == one.pk]
        code = self.tried(f"undo by {one.first_name}", lambda: take_back(now(self.gate), by=one))
        if (not code) != bool(mine and self.undoes):
            raise Wrong("an undo")
        if not code:
            self.facts = replace(self.facts, votes=tuple(vote for vote in self.facts.votes if vote not in mine))
            self.judge()

    def end_window(self) -> None:
        pass_window(self.gate)
        self.facts, self.stale = self.facts.judged(), False
        end = self.facts.ending
        self.note("settle")
        settle(now(self.gate))
        if end is not None and end == self.settles_for:
            self.settles_for, self.closed = None, end
        else:
            self.settles_for = end  # nobody, or another end, which has a window of its own

    def let_time_pass(self) -> None:
        change_gate(self.gate, settles_at=timezone.now() + timedelta(seconds=5))

    # People

    def look_over(self) -> None:
        """Do what a refusal does, after which somebody who left counts no more."""
        if self.open and not self.waits:
            projection.look_again(self.gate.pk)
            self.stale = False

    def changed(self, move: str, **facts: Any) -> None:
        """Note that somebody came or left. The gate is judged again after it, or not yet."""
        self.facts, self.stale = replace(self.facts, **facts), True
        if self.chance():
            self.look_over()
        self.note(move if self.stale else f"{move}: looked over")

    def leave(self) -> None:
        one, team = self.somebody(), self.team()
        one.groups.remove(team)
        self.move_to(one, self.facts.members.get(one.pk, frozenset()) - {team.pk})

    def join(self) -> None:
        one, team = self.somebody(), self.team()
        if one.is_active:
            one.groups.add(team)
            self.move_to(one, self.facts.members[one.pk] | {team.pk})

    def move_to(self, one: User, teams: frozenset[int]) -> None:
        if one.is_active:
            self.changed(f"teams by {one.first_name}: {sorted(teams)}", members=self.facts.members | {one.pk: teams})

    def switch_off(self) -> None:
        one = self.somebody()
        one.is_active = False
        one.save(update_fields=["is_active"])
        left = {pk: there for pk, there in self.facts.members.items() if pk != one.pk}
        self.changed(f"switched off by {one.first_name}", members=left)

    def lend(self) -> None:
        one, other = self.random.sample(self.people, 2)
        scope = self.random.choice(["all", "all", "team", "policy", "other"])
        teams = [self.teams[0].pk] if scope == "team" else []
        policies = {"policy": [self.policy.name], "other": ["other"]}.get(scope, [])
        day = timedelta(days=1)
        Delegation.objects.create(
            person=one, delegate=other, starts_at=timezone.now() - day, ends_at=timezone.now() + day, teams=teams,
            policies=policies,
        )  # fmt: skip
        made = Lend(one.pk, other.pk, frozenset(teams), frozenset(policies))
        self.changed(f"lend by {one.first_name} to {other.first_name}, {scope}", lends=(*self.facts.lends, made))

    def come_back(self) -> None:
        one = self.somebody()
        Delegation.objects.filter(person=one).update(ended_at=timezone.now())
        left = tuple(lend for lend in self.facts.lends if lend.person != one.pk)
        self.changed(f"come back by {one.first_name}", lends=left)

    # The desk

    def claim(self) -> None:
        one, how = self.somebody(), self.random.choice(["claim", "take over", "release"])
        move = {"claim": claims.claim, "take over": claims.take_over, "release": claims.release}[how]
        code = self.tried(f"{how} by {one.first_name}", partial(move, now(self.gate), by=one))
        may = bool(self.facts.authorities(one.pk))
        allowed = {
            "claim": may and self.holder in (None, one),
            "take over": may and self.holder is not None,
            "release": self.holder == one,
        }
        if allowed[how] != (not code):
            raise Wrong("a claim")
        if not code:
            self.holder = None if how == "release" else one

    def add_team(self) -> None:
        level = Escalation.objects.filter(gate=self.gate, status="planned").first()
        if level is not None and self.chance():
            added = self.teams[2]
            Escalation.objects.filter(pk=level.pk).update(due_at=timezone.now() - HOUR)
            self.note("escalate")
            if not reassigning.escalate(Escalation.objects.get(pk=level.pk)):
                raise Wrong("an escalation was not made")
        else:
            added, gate = self.team(), now(self.gate)
            hand_over = partial(reassigning.reassign, gate, to=added, reason="Please.", by=self.adder)
            if self.tried("reassign", hand_over):
                return
        everybody = {each for stage in self.facts.stages for role in stage for each in role.teams}
        if added.pk not in everybody:
            self.facts = replace(self.facts, added=self.facts.added | {added.pk})
        self.judge()

    # The end without a vote, and what does not end it

    def end_without_votes(self) -> None:
        if self.chance():
            self.note("deadline")
            change_gate(self.gate, deadline=timezone.now() - HOUR)
            reassigning.pass_deadline(now(self.gate))
            self.closed = Ending("expired")
        else:
            self.note("withdrawn")
            closing.withdraw(now(self.gate), by=SYSTEM, reason="Not needed.")
            self.closed = Ending("withdrawn")

    def change_policy(self) -> None:
        """A gate keeps the version under which it was opened."""
        self.note("policy change")
        milder = type(self.policy).objects.get(pk=self.policy.pk)
        milder.pk, milder._state.adding, milder.stages, milder.quorum = None, True, "", 1
        versions.write(milder, by=SYSTEM, groups=[self.teams[1]])

    # What has to hold

    def check(self) -> None:
        self.turn += 1
        self.check_end()
        if self.open and not self.waits:
            if not self.stale:
                self.check_asked()
            if self.holder is None:
                self.check_votes()

    def check_end(self) -> None:
        """The gate is as its votes say."""
        row = now(self.gate)
        if self.closed is not None:
            outcome = Outcome.objects.filter(gate=row).first()
            told = None if outcome is None else (outcome.kind if outcome.kind != "edited" else "approved", outcome.then)
            if told != (self.closed.kind, self.closed.then):
                raise Wrong(f"it ended as {told}, and not as {self.closed}")
        elif row.status != Gate.Status.OPEN:
            raise Wrong(f"it is {row.status} by votes that do not end it")
        elif bool(row.settles_at) != self.waits:
            raise Wrong(f"{row.settles_as or 'nothing'} waits for the end of the window, and not {self.settles_for}")

    def check_asked(self) -> None:
        """The same people are asked in the inbox and by messages."""
        facts = self.facts.judged()
        should = {one.pk for one in self.people if facts.asked(one.pk)}
        looked_at = [one for at, one in enumerate(self.people) if one.pk in should or (at + self.turn) % 3 == 0]
        inbox = {one.pk for one in looked_at if self.gate.pk in waiting(one)}
        self.compare("in the inbox of", inbox, should & {one.pk for one in looked_at})
        gate = read(self.gate.pk).gate
        used = {(gate.pk, each) for vote in facts.votes for each in (vote.person, vote.authority)}
        self.compare("told", authority.may_decide([gate], used=used)[gate.pk] - facts.used(), should)

    def compare(self, how: str, found: set[int], should: set[int]) -> None:
        if found != should:
            names = {one.pk: one.first_name for one in self.people} | {self.adder.pk: "Adder"}
            says = [f"{names[pk]}: {'should be' if pk in should else 'is'} {how}" for pk in sorted(found ^ should)]
            raise Wrong(", ".join(says))

    def check_votes(self) -> None:
        """Whoever is asked may approve, and nobody else; one of each is tried."""
        facts = self.facts.judged()
        people = sorted(self.people, key=lambda one: (one.pk + self.turn) % len(self.people))
        asked = [one for one in people if facts.asked(one.pk)]
        for one in [*asked[:1], *[one for one in people if one not in asked][:1]]:
            code = self.trial(one)
            if (one in asked) == bool(code):
                raise Wrong(f"{one.first_name} is {'' if one in asked else 'not '}asked: {code or 'taken'}")

    def trial(self, one: User) -> str:
        """Return "" or the code by which this person's approval would be refused now."""
        seen = bytes(now(self.gate).standing().digest)
        sent = Submission(verdict="approve", seen=seen, key=secrets.token_hex(8), second_look=True)
        with transaction.atomic():
            try:
                deciding._record(self.gate.pk, sent, one, None, None)
                return ""
            except DecisionRefused as refused:
                return str(refused.code)
            finally:
                transaction.set_rollback(True)


@pytest.mark.examples
@pytest.mark.parametrize("part", first_alone(range(8), 3))  # side by side
def test_the_decision_keeps_what_the_docs_promise(part: int) -> None:
    first = random.SystemRandom().randrange(10**9) if trying_all() else part * WORLDS
    MOVES.clear()
    for seed in range(first, first + (MANY_WORLDS if trying_all() else WORLDS)):
        with undone():
            world = World(seed)
            try:
                world.live()
            except Exception as wrong:
                wrong.add_note(f"seed {seed}, stages {world.facts.stages}: {', '.join(world.moves)}")
                raise
    assert len(MOVES) >= 16, MOVES
