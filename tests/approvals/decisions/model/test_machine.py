"""Random moves of people at one gate, against the real tables; `expected` says after each what the docs promise.

After every move five answers to one question are compared: who is in whose inbox, who is told, what the gate's row
says, whose approval is taken, and who should be asked. What a vote comes to is compared as well.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from approvals.assignments import claims, escalating, reassigning
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
from tests.harness.examples import first_alone, many

from .expected import AskedRole, Ending, Facts, Lend, Vote

PEOPLE = ("Ann", "Bob", "Cid", "Dee", "Eve", "Fay")
TEAMS = ("Support", "Finance", "Legal")
HOUR = timedelta(hours=1)
ADDER = ("checkpoints.view_run", "approvals.add_reviewers")
MOVES: Counter[str] = Counter()
# What the product gets wrong today, by the name of the check.
KNOWN: frozenset[str] = frozenset()

who = st.integers(0, len(PEOPLE) - 1)
some_teams = st.frozensets(st.integers(0, len(TEAMS) - 1), max_size=2)
in_teams = st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), ()]).map(frozenset)
roles = st.tuples(st.sampled_from([1, 1, 2]), some_teams, st.frozensets(who, max_size=1)).filter(
    lambda role: bool(role[1] or role[2])
)
stages = st.lists(st.lists(roles, min_size=1, max_size=2), min_size=1, max_size=3)
scopes = st.sampled_from(["all", "all", "team", "policy", "other"])


class Wrong(AssertionError):
    """A promise that does not hold; `name` is the check's."""

    def __init__(self, name: str, told: str) -> None:
        super().__init__(f"{name}: {told}")
        self.name = name


class DecisionMachine(RuleBasedStateMachine):
    """One gate of a policy of random stages, six people in three teams, and what they may do."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.outer = transaction.atomic()
        self.outer._from_testcase = True  # type: ignore[attr-defined]  # decisions open durable transactions in it
        self.outer.__enter__()
        self.settles_for: Ending | None = None
        self.stale = False  # whether somebody came or left since the gate was last judged
        self.turn = 0

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.outer.__exit__(None, None, None)

    # The world

    @initialize(
        stages=stages, starter=st.none() | who, window=st.booleans(), level=st.booleans(),
        places=st.lists(in_teams, min_size=len(PEOPLE), max_size=len(PEOPLE)),
    )  # fmt: skip
    def begin(self, stages: Any, starter: int | None, window: bool, level: bool, places: list[frozenset[int]]) -> None:
        self.teams = [make_team(name) for name in TEAMS]
        self.all_hands = make_team("All hands", may=())  # of all but the last, who has colleagues in their teams alone
        self.people = [make_user(name, *[self.all_hands] * (name != PEOPLE[-1])) for name in PEOPLE]
        for person, there in zip(self.people, places, strict=True):
            person.groups.add(*(self.teams[each] for each in there))
        self.adder = make_user("Adder", self.teams[0], may=())
        self.adder.groups.clear()
        rights = make_team("Adders", may=ADDER)
        self.adder.groups.add(rights)
        asked = tuple(
            tuple(
                AskedRole(
                    count, frozenset(self.teams[at].pk for at in teams), frozenset(self.people[at].pk for at in named)
                )
                for count, teams, named in stage
            )
            for stage in stages
        )
        alone = sum(role.number for stage in asked for role in stage) == 1
        said: dict[str, Any] = {"undo_window": WINDOW} if window else {}
        said |= {"escalation": [{"team": self.teams[2].pk, "after": 3600, "extend": None}]} if level else {}
        roles = [
            [{"quorum": role.number, "groups": sorted(role.teams), "people": sorted(role.people)} for role in stage]
            for stage in asked
        ]
        written = [{"roles": each} for each in roles]
        self.undoes, self.window = window, window and alone
        self.policy = make_policy(self.teams[0], name=unique("p"), stages=written, **said)
        by = None if starter is None else self.people[starter]
        self.gate = make_gate(policy=self.policy, started_by=by)
        self.closed: Ending | None = None
        self.holder: User | None = None
        self.facts = Facts(
            team=self.teams[0].pk, policy=self.policy.name, stages=asked,
            members={
                one.pk: frozenset(self.teams[each].pk for each in there)
                for one, there in zip(self.people, places, strict=True)
            },
            together={each.pk: frozenset({0}) for each in self.people[:-1]},
            apart=frozenset() if by is None else frozenset({by.pk}),
        )  # fmt: skip

    @property
    def open(self) -> bool:
        return self.closed is None

    @property
    def waits(self) -> bool:
        """Tell whether a decision waits for the end of its undo window."""
        return self.open and self.settles_for is not None

    def tried(self, name: str, move: Callable[[], Any]) -> str:
        """Make a move; return "" or the code of its refusal."""
        MOVES[name] += 1
        try:
            move()
        except (DecisionRefused, DeskRefused) as refused:
            return str(refused.code)
        return ""

    def judge(self) -> None:
        """Say what the votes come to now, and note it as the product should."""
        self.facts, self.stale = self.facts.judged(), False
        end = self.facts.ending
        if end is None:
            self.settles_for = None
        elif self.window:
            self.settles_for = end
        else:
            self.closed = end

    # Votes

    @precondition(lambda self: self.open)
    @rule(
        person=who,
        verdict=st.sampled_from(["approve"] * 5 + ["reject", "reject", "edit"]),
        amount=st.integers(1, 900),
        then=st.sampled_from(["stop", "back"]),
    )
    def vote(self, person: int, verdict: str, amount: int, then: str) -> None:
        one, facts = self.people[person], self.facts.judged()
        claimed = self.holder is not None and self.holder != one
        mine = [vote for vote in facts.votes if one.pk in (vote.person, vote.authority)]
        said: dict[str, Any] = {"second_look": True}
        if verdict == "edit":
            said["arguments"] = edit_amount(self.gate, f"{amount}.00")
        elif verdict == "reject":
            said["then"] = then
        before = now(self.gate)
        code = self.tried(verdict, lambda: decide_gate(self.gate, one, verdict, **said))
        free = replace(facts, votes=tuple(vote for vote in facts.votes if vote not in mine))
        rejects = verdict == "reject"
        again = any(vote.rejects == rejects for vote in mine) and verdict != "edit"
        if claimed or again or (not rejects and free.ending and free.ending.kind == "rejected"):
            allowed = False
        elif verdict == "approve":
            allowed = free.asked(one.pk) or (free.ending is not None and free.may_say(one.pk))
        else:
            allowed = free.may_say(one.pk)
        if allowed != (not code):
            self.wrong("a vote is taken that should not be" if not code else "a vote is refused that should be taken",
                       f"{one.first_name} {verdict}: {code or 'taken'}")  # fmt: skip
        if code:
            self.looked_over()
            return
        made = Decision.objects.filter(gate=self.gate, user=one).latest("pk")
        if self.holder == one:
            self.holder = None
        kept = free.votes if verdict != "edit" else tuple(vote for vote in free.votes if vote.rejects)
        was = self.settles_for
        self.facts = replace(free, votes=(*kept, Vote(one.pk, made.authority, rejects, then if rejects else "")))
        self.judge()
        self.window_is_its_own(before, was)

    def window_is_its_own(self, before: Gate, was: Ending | None) -> None:
        """Another end has an undo window of its own."""
        after = now(self.gate)
        if self.settles_for and was and self.settles_for != was and after.settles_at and before.settles_at:
            left = after.settles_at - timezone.now()
            if left < WINDOW / 2:
                self.wrong("another end takes effect without a window of its own", f"{was} -> {self.settles_for}")

    def approves(self, at: int) -> None:
        """Have somebody who is asked approve: else most votes of a world would be refused."""
        asked = [place for place, one in enumerate(self.people) if self.facts.judged().asked(one.pk)]
        if asked and not self.holder:
            self.vote(asked[at % len(asked)], "approve", 1, "")

    # Three rules, so that every third move is such a vote.
    @precondition(lambda self: self.open)
    @rule(at=who)
    def the_next_approves(self, at: int) -> None:
        self.approves(at)

    @precondition(lambda self: self.open)
    @rule(at=who)
    def somebody_asked_approves(self, at: int) -> None:
        self.approves(at)

    @precondition(lambda self: self.open)
    @rule(at=who)
    def one_more_approves(self, at: int) -> None:
        self.approves(at)

    @precondition(lambda self: self.open)
    @rule(person=who)
    def undo(self, person: int) -> None:
        one, facts = self.people[person], self.facts
        mine = [vote for vote in facts.votes if vote.person == one.pk]
        code = self.tried("undo", lambda: take_back(now(self.gate), by=one))
        if (not code) != bool(mine and self.undoes):
            self.wrong("an undo", f"{one.first_name}: {code or 'taken'}")
        if not code:
            self.facts = replace(facts, votes=tuple(vote for vote in facts.votes if vote not in mine))
            self.judge()

    @precondition(lambda self: self.waits)
    @rule()
    def the_window_ends(self) -> None:
        pass_window(self.gate)
        self.facts, self.stale = self.facts.judged(), False
        end = self.facts.ending
        MOVES["settle"] += 1
        settle(now(self.gate))
        if end is not None and end == self.settles_for:
            self.settles_for, self.closed = None, end
        else:
            self.settles_for = end  # nobody, or another end, which has a window of its own

    @precondition(lambda self: self.waits)
    @rule()
    def time_passes(self) -> None:
        change_gate(self.gate, settles_at=timezone.now() + timedelta(seconds=5))

    # People

    def looked_over(self) -> None:
        """Do what a refusal does, after which somebody who left counts no more."""
        if self.open and not self.waits:
            projection.look_again(self.gate.pk)
            self.stale = False

    def noticed(self, seen: bool) -> None:
        """Judge the gate again after somebody came or left, or not yet."""
        self.stale = True
        if seen:
            self.looked_over()

    @rule(person=who, team=st.integers(0, len(TEAMS) - 1), seen=st.booleans())
    def leave(self, person: int, team: int, seen: bool) -> None:
        self.people[person].groups.remove(self.teams[team])
        self.now_in(person, lambda there: there - {self.teams[team].pk}, seen)

    @rule(person=who, team=st.integers(0, len(TEAMS) - 1), seen=st.booleans())
    def join(self, person: int, team: int, seen: bool) -> None:
        if self.people[person].pk in self.facts.members:
            self.people[person].groups.add(self.teams[team])
            self.now_in(person, lambda there: there | {self.teams[team].pk}, seen)

    def now_in(self, person: int, change: Callable[[frozenset[int]], frozenset[int]], seen: bool) -> None:
        MOVES["membership"] += 1
        one = self.people[person].pk
        if one in self.facts.members:
            self.facts = replace(self.facts, members=self.facts.members | {one: change(self.facts.members[one])})
        self.noticed(seen)

    @rule(person=who, seen=st.booleans())
    def switched_off(self, person: int, seen: bool) -> None:
        MOVES["switched off"] += 1
        one = self.people[person]
        one.is_active = False
        one.save(update_fields=["is_active"])
        self.facts = replace(
            self.facts, members={pk: there for pk, there in self.facts.members.items() if pk != one.pk}
        )
        self.noticed(seen)

    @rule(person=who, delegate=who, scope=scopes, seen=st.booleans())
    def lend(self, person: int, delegate: int, scope: str, seen: bool) -> None:
        if person == delegate:
            return
        MOVES["lend"] += 1
        one, other = self.people[person], self.people[delegate]
        teams = [self.teams[0].pk] if scope == "team" else []
        policies = {"policy": [self.policy.name], "other": ["other"]}.get(scope, [])
        day = timedelta(days=1)
        Delegation.objects.create(
            person=one, delegate=other, starts_at=timezone.now() - day, ends_at=timezone.now() + day, teams=teams,
            policies=policies,
        )  # fmt: skip
        made = Lend(one.pk, other.pk, frozenset(teams), frozenset(policies))
        self.facts = replace(self.facts, lends=(*self.facts.lends, made))
        self.noticed(seen)

    @rule(person=who, seen=st.booleans())
    def come_back(self, person: int, seen: bool) -> None:
        MOVES["come back"] += 1
        one = self.people[person]
        Delegation.objects.filter(person=one).update(ended_at=timezone.now())
        self.facts = replace(self.facts, lends=tuple(lend for lend in self.facts.lends if lend.person != one.pk))
        self.noticed(seen)

    # The desk

    @precondition(lambda self: self.open)
    @rule(person=who, how=st.sampled_from(["claim", "take over", "release"]))
    def claim(self, person: int, how: str) -> None:
        one = self.people[person]
        move = {"claim": claims.claim, "take over": claims.take_over, "release": claims.release}[how]
        code = self.tried(how, partial(move, now(self.gate), by=one))
        may = bool(self.facts.authorities(one.pk))
        mine = self.holder == one
        allowed = {
            "claim": may and self.holder in (None, one),
            "take over": may and self.holder is not None,
            "release": mine,
        }
        if allowed[how] != (not code):
            self.wrong("a claim", f"{one.first_name} {how}: {code or 'taken'}")
        if not code:
            self.holder = None if how == "release" else one

    @precondition(lambda self: self.open)
    @rule(team=st.integers(0, len(TEAMS) - 1), handed=st.booleans())
    def team_is_added(self, team: int, handed: bool) -> None:
        added = self.teams[team]
        if handed:
            code = self.tried(
                "reassign", lambda: reassigning.reassign(now(self.gate), to=added, reason="Please.", by=self.helper())
            )
            if code:
                return
        else:
            level = Escalation.objects.filter(gate=self.gate, status="planned").first()
            if level is None:
                return
            added = self.teams[2]
            Escalation.objects.filter(pk=level.pk).update(due_at=timezone.now() - HOUR)
            MOVES["escalate"] += 1
            if not escalating.escalate(Escalation.objects.get(pk=level.pk)):
                self.wrong("an escalation", "it was not made")
        everybody = {each for stage in self.facts.stages for role in stage for each in role.teams}
        if added.pk not in everybody:
            self.facts = replace(self.facts, added=self.facts.added | {added.pk})
        self.judge()

    def helper(self) -> User:
        """Return somebody who may add reviewers and decides nothing."""
        if not self.adder.groups.filter(pk=self.teams[0].pk).exists():
            self.adder.user_permissions.clear()
            from tests.factories.people import permissions

            self.adder.user_permissions.add(*permissions(ADDER))
        return self.adder

    # The end without a vote

    @precondition(lambda self: self.open and not self.waits)
    @rule(how=st.sampled_from(["deadline", "withdrawn"]), really=st.integers(0, 5))
    def nobody_decides(self, how: str, really: int) -> None:
        if really:  # seldom, or no world would come to anything else
            return
        MOVES[how] += 1
        if how == "deadline":
            change_gate(self.gate, deadline=timezone.now() - HOUR)
            escalating.pass_deadline(now(self.gate))
            self.closed = Ending("expired")
        else:
            closing.withdraw(now(self.gate), by=SYSTEM, reason="Not needed.")
            self.closed = Ending("withdrawn")

    @precondition(lambda self: self.open)
    @rule()
    def the_policy_changes(self) -> None:
        """A gate keeps the version under which it was opened."""
        MOVES["policy change"] += 1
        milder = type(self.policy).objects.get(pk=self.policy.pk)
        milder.pk, milder._state.adding, milder.stages, milder.quorum = None, True, "", 1
        versions.write(milder, by=SYSTEM, groups=[self.teams[1]])

    # What has to hold

    def wrong(self, name: str, told: str) -> None:
        self.found[name] += 1
        if name not in KNOWN:
            raise Wrong(name, told)

    @invariant()
    def the_gate_is_as_its_votes_say(self) -> None:
        if not hasattr(self, "gate"):
            return
        row = now(self.gate)
        if self.closed is not None:
            outcome = Outcome.objects.filter(gate=row).first()
            told = None if outcome is None else (outcome.kind if outcome.kind != "edited" else "approved", outcome.then)
            if told != (self.closed.kind, self.closed.then):
                self.wrong("how it ended", f"{told}, and not {self.closed}")
        elif row.status != Gate.Status.OPEN:
            self.wrong("it is closed by votes that do not end it", row.status)
        elif bool(row.settles_at) != self.waits:
            self.wrong(
                "what waits for the end of the window", f"{row.settles_as or 'nothing'}, and not {self.settles_for}"
            )

    @invariant()
    def the_same_people_are_asked_everywhere(self) -> None:
        if not hasattr(self, "gate") or not self.open or self.waits or self.stale:
            return
        facts = self.facts.judged()
        names = {each.pk: each.first_name for each in self.people}
        should = {pk for pk in names if facts.asked(pk)}
        looked_at = [each for at, each in enumerate(self.people) if each.pk in should or (at + self.turn) % 3 == 0]
        inbox = {each.pk for each in looked_at if self.gate.pk in waiting(each)}
        if inbox != should:
            told = {names[pk]: ("should be asked" if pk in should else "is asked") for pk in inbox ^ should}
            self.wrong("who has it in the inbox", str(told))
        gate = read(self.gate.pk).gate
        used = {(gate.pk, each) for vote in facts.votes for each in (vote.person, vote.authority)}
        hears = authority.may_decide([gate], used=used)[gate.pk] - facts.used()
        if hears != should:
            told = {names[pk]: ("should be told" if pk in should else "is told") for pk in hears ^ should}
            self.wrong("who is told", str(told))

    @invariant()
    def whoever_is_asked_may_approve(self) -> None:
        if not hasattr(self, "gate") or not self.open or self.waits or self.holder is not None:
            return
        facts = self.facts.judged()
        self.turn += 1
        people = sorted(self.people, key=lambda one: (one.pk + self.turn) % len(self.people))
        asked = [one for one in people if facts.asked(one.pk)]
        for one in [*asked[:1], *[one for one in people if one not in asked][:1]]:  # one of each is tried each time
            code = self.trial(one)
            if facts.asked(one.pk) and code:
                self.wrong("somebody who is asked is refused", f"{one.first_name}: {code}")
            if not facts.asked(one.pk) and not code:
                self.wrong("an approval is taken that completes nothing", one.first_name)

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
@pytest.mark.parametrize("part", first_alone(range(8), 4))  # side by side
def test_the_decision_keeps_what_the_docs_promise(part: int) -> None:
    MOVES.clear()
    run_state_machine_as_test(
        DecisionMachine,
        settings=settings(max_examples=many(50), stateful_step_count=20, deadline=None, phases=[Phase.generate]),
    )
    assert len(MOVES) >= 5, (part, MOVES)
