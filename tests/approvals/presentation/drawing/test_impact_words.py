"""How an impact, a deadline and a time are told on a page: in one order, a count first, then names."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from approvals.impact import Impact, ImpactRow, ImpactVerdict
from approvals.models import Decision, Gate, Policy
from approvals.policy.requirements import Requirements, Role, Stage
from approvals.policy.tally import CountedVote, tally
from approvals.presentation.drawing import impact_words, times
from approvals.presentation.drawing.impact_words import ImpactLine as Line
from approvals.presentation.gate_facts.agreement import Agreement, VoteLine
from tests.factories import ann, make_gate, make_plan, make_policy, make_run, make_spec, make_team
from tests.harness.signed_in_clients import signed_in

WILL, MAY, STANDS, UNDONE = ImpactVerdict.WILL, ImpactVerdict.MAY, ImpactVerdict.STANDS, ImpactVerdict.UNDONE


def needing(quorum: int, *approved: int, **more: Any) -> Agreement:
    """An agreement of so many of one team, with these people's approvals."""
    needs = Requirements(stages=(Stage(roles=(Role(quorum=quorum, teams=(1,)),)),))
    count = tally(needs, [CountedVote(person=each, teams=frozenset({1})) for each in approved])
    return Agreement(quorum=quorum, agreed=count.agreed, tally=count, **more)


ONE = needing(1)


def step(name: str, verdict: ImpactVerdict, **more: Any) -> ImpactRow:
    return ImpactRow(step=name, kind=more.pop("kind", "step"), verdict=verdict, **more)


ALL = Impact(
    rows=(
        step("read", STANDS, kept=True, why="path"),
        step("find", STANDS, kept=True, why="path"),
        step("plan", WILL, took=timedelta(seconds=4)),
        step("check", MAY, on=("plan",), took=timedelta(seconds=0.2)),
        step("ask", MAY, kind="gate", on=("plan",), asks=True),
        step("mail", MAY, kind="effect", on=("plan", "ask"), irreversible=True),
        step("mail", ImpactVerdict.CANNOT, kind="effect", why="left", effect=3, irreversible=True),
        step("pay", ImpactVerdict.MAY_UNDONE, kind="effect", why="left", effect=2, on=("plan",)),
        step("book", UNDONE, kind="effect", why="left", effect=1),
    )
)


def lines(drawn: impact_words.WordedImpact) -> list[str]:
    return [f"{line.title}: {spoken(line)}" for line in drawn.rows]


def spoken(line: Line) -> str:
    return "; ".join(filter(None, [", ".join(line.names), line.said]))


def test_the_order_is_run_keep_undo_cannot_undo_people() -> None:
    assert lines(impact_words.back(ALL, "plan", ONE)) == [
        "Runs: Plan; about 4 s",
        "May run: Check, Mail; decided by earlier steps",
        "May ask: Ask; decided by earlier steps",
        "Kept: Read, Find",
        "Undone: Book",
        "May be undone: Pay; unless the run arrives at exactly the same again",
        "Cannot be undone: Mail; What was done stays done. What runs now cannot be undone either",
        "Closes immediately: The agent gets your feedback",
    ]
    titled = replace(ALL, titles={"plan": "Plan the trip"})
    assert lines(impact_words.back(titled, "plan", ONE))[0] == "Runs: Plan the trip; about 4 s"
    assert titled.digest() == ALL.digest()


def test_the_track_puts_what_is_undone_before_the_hold_line_and_what_comes_behind_it() -> None:
    assert impact_words.back(ALL, "plan", ONE).marks == ("reused", "reused", "undone", "run", "ahead", "held", "ahead")
    assert impact_words.approval("approve", ALL, ONE, current=True).marks == (
        "reused",
        "reused",
        "undone",
        "held",
        "run",
        *["ahead"] * 3,
    )
    track = str(impact_words.back(ALL, "plan", ONE).track)
    assert len(re.findall('class="node"', track)) == 6
    assert 'data-tone="stop"' in track


def test_nothing_runs_before_the_others_have_agreed() -> None:
    told = Impact(rows=(step("pay", WILL, kind="effect"),), ends=True)
    first = impact_words.approval("approve", told, needing(2), current=True)
    assert lines(first) == [
        "Runs later: Pay; then the run ends",
        "1 of 2: Yours is approval 1 of 2. Nothing runs until one more person approves",
    ]
    assert first.marks == ("held", "ahead")
    last = "Yours is the last approval needed: it takes effect immediately"
    one = needing(2, 7, voices=[VoteLine(decision=Decision(), name="Mira", state="approved")])
    assert lines(impact_words.approval("approve", told, one, current=True))[-1] == f"2 of 2: {last}"
    edited = impact_words.approval("edit", told, one, current=False)
    assert lines(edited)[-1] == (
        "1 of 2: Your edit cancels the approval of Mira, who must approve again. "
        "Yours is approval 1 of 2. Nothing runs until one more person approves"
    )


def test_where_nothing_runs_before_somebody_is_asked_that_is_said() -> None:
    """It was said that nothing runs, and "then" somebody asks."""
    told = Impact(rows=(step("review", WILL, kind="gate", asks=True),), asks="review")
    assert lines(impact_words.back(told, "review", ONE))[0] == "Runs nothing: “Review” asks first"
    assert impact_words.expiry(told) == "After that the gate expires: “Review” asks"
    assert impact_words.expiry(Impact(ends=True)) == "After that the gate expires and nothing is done"
    assert impact_words.expiry(ALL) == (
        "After that the gate expires: “Plan” runs, “Check” and “Mail” may run, “Book” is undone, "
        "“Pay” may be undone and “Ask” may ask"
    )
    plan = step("plan", WILL)
    assert lines(impact_words.back(Impact(rows=(plan, *told.rows), asks="review"), "plan", ONE))[0] == (
        "Runs: Plan; then “Review” asks"
    )


def test_a_fork_says_what_it_asks_about_what_its_origin_did() -> None:
    """It was said that an effect may run, depending on itself, and that the effect asks."""
    row = step("reply", MAY, kind="effect", why="takeover", on=("reply",), asks=True, origin=12, effect=3)
    told = Impact(rows=(step("find", STANDS), row), asks="reply")
    asks = "ou are asked whether to reuse what R-12 already did in “Reply”"
    assert lines(impact_words.drawn(told, "x", at_gate=False)) == [f"Runs nothing: Y{asks} first", "Kept: Find"]
    assert impact_words.expiry(told) == f"After that the gate expires: y{asks}"
    told = Impact(rows=(step("find", WILL), row), asks="reply")
    assert lines(impact_words.drawn(told, "x", at_gate=False)) == [f"Runs: Find; then y{asks}"]


def until(team: Group | None = None, **more: Any) -> Policy:
    return make_policy(team or make_team(), deadline=dt.timedelta(hours=2), **more)


def page_of(gate: Gate) -> str:
    return signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()


def test_what_a_deadline_does_is_said_as_the_plan_the_policy_and_the_question_have_it() -> None:
    """It was told that nothing runs, and a step ran; a question was told to be approved, and the run ended."""
    team = make_team()
    steps = tuple(
        replace(step, on_expire="reply") if step.name == "review" else replace(step, guarded=False)
        for step in make_spec().steps
    )
    run = make_run(team=team, plan=make_plan(make_spec(steps=steps)))
    assert "After that the gate expires: “Reply” runs" in page_of(make_gate(run=run, policy=until(team)))
    nothing = "After that the gate expires and nothing is done"
    assert nothing in page_of(make_gate(policy=until()))
    assert "Then it is approved automatically" in page_of(make_gate(policy=until(on_expiry="approve")))
    assert nothing in page_of(make_gate(policy=until(on_expiry="approve"), kind="recovery"))


@pytest.mark.parametrize("end", ["expire", "approve"])
def test_a_deadline_at_which_the_next_team_is_asked_ends_nothing(end: str) -> None:
    """It said that the gate expires, or is approved, beside the line that says to whom it goes."""
    team, leads, directors = make_team(), make_team("Leads"), make_team("Directors")
    policy = until(team, on_expiry=end)
    levels = [(leads, 60, None), (directors, None, 3600)]
    escalation = [{"team": each.pk, "after": after, "extend": extend} for each, after, extend in levels]
    Policy.objects.filter(pk=policy.pk).update(escalation=escalation)
    page = page_of(make_gate(policy=policy))
    assert f"Then {directors.name} is asked too, and there is more time" in page
    assert "After that the gate expires" not in page
    assert "approved automatically" not in page


AT = dt.datetime(2026, 7, 1, 22, 30, 5, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("zone", "style", "words"),
    [
        (None, "clock", "22:30 UTC"),
        ("Asia/Kolkata", "clock", "2 Jul, 04:00"),
        ("America/New_York", "second", "18:30:05"),
        ("UTC", "moment", "1 Jul, 22:30 UTC"),
    ],
)
def test_a_moment_is_said_in_a_zone(zone: str | None, style: str, words: str) -> None:
    now = AT + dt.timedelta(minutes=5)
    with timezone.override(ZoneInfo(zone) if zone else None):
        said = times.say(
            AT, style, now=now if zone in (None, "America/New_York", "UTC") else now - dt.timedelta(hours=20)
        )
    assert said == words


def test_a_cookie_that_names_no_zone_is_passed_over() -> None:
    gate = make_gate(team=(team := make_team()))
    reader = signed_in(ann(team))
    for junk in ("Mars/Olympus", "../../etc/passwd", "x" * 5000, ""):
        reader.cookies["hp-zone"] = junk
        assert re.search(r"\d\d:\d\d UTC</time>", reader.get(f"/gates/{gate.pk}/").content.decode())
    reader.cookies["hp-zone"] = "Asia/Kolkata"
    assert "UTC</time>" not in reader.get(f"/gates/{gate.pk}/").content.decode()
