"""What people read and write at the jobshop's gate: the card's texts, and their feedback. Pure.

Reviewers may ask in plain words: "keep job 3", "keep jobs 3, 5 and 7", "let job 3 move". Later words override earlier
ones. Jobs are numbered as in the file and in the charts, from 0. A validator's words are under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel

from agents import Card
from approvals.cards.card import AnswerChoice
from approvals.cards.chart import Chart
from approvals.cards.quote import Quote
from approvals.english import count_of, join_names, noun_for

from .repair import Situation
from .shop import Repair, Schedule

VALIDATORS = ("check_plan", "check_local", "check_global")
_ASKED = re.compile(
    r"\b(?:(?P<keep>keep|hold|do not move|don't move|leave)|let|free|release|move)\b[^.;\d]*?\bjobs?\s+"
    r"(?P<jobs>\d{1,4}(?:\s*(?:,|and|&|\s)\s*\d{1,4})*)",
    re.IGNORECASE,
)


class Feedback(BaseModel):
    """What a reviewer wrote who sent the run back, or what a validator said. The runner may know more."""

    text: str
    by: str = ""


def read_feedback(feedback: Sequence[Feedback], jobs: int) -> tuple[set[int], list[str]]:
    """(the jobs that are not to move, the names of those who wrote what no rule reads), in a shop of `jobs` jobs."""
    still, unread = set[int](), list[str]()
    for words in feedback:
        understood = words.by in VALIDATORS
        for wish in _ASKED.finditer(words.text):
            known = {number for number in map(int, re.findall(r"\d+", wish["jobs"])) if number < jobs}
            still = still | known if wish["keep"] else still - known
            understood = understood or bool(known)
        if not understood:
            unread.append(words.by or "somebody")
    return still, unread


def ask_which(
    name: str, now: Situation, plan: Schedule, local: Repair, whole: Repair, feedback: Sequence[Feedback]
) -> Card:
    """Ask which of two schedules goes to the shop floor."""
    down, ends = now.down, f"{plan.makespan:,}"
    summary = f"Machine {down.machine} stops at {down.since:,} and is back at {down.until:,}. The plan ended at {ends}."
    summary = f"{summary} {local.how} {whole.how}"
    if now.still:
        summary += f" Kept as asked: {noun_for(len(now.still), 'job')} {', '.join(map(str, sorted(now.still)))}."
    reasons = [f"{count_of(len(now.hit), 'operation')} planned while the machine is down"]
    if min(local.makespan, whole.makespan) > plan.makespan:
        reasons.append(f"Neither schedule ends by {ends}, as planned")
    if local.makespan < whole.makespan:
        reasons.append("The global plan ends later than the local repair: its time was too short")
    reasons += [f"Job {job} cannot keep its times: the breakdown itself is in its way" for job in displaced_jobs(now)]
    if unread := read_feedback(feedback, len(now.shop.jobs))[1]:
        reasons.append(f"No rule of the agent reads what {join_names(unread)} wrote")
    charts, choices = list[Chart](), list[AnswerChoice]()
    both = [("local", "Local repair", "/local_repair", local), ("global", "Global plan", "/global_plan", whole)]
    for id, title, pointer, repair in both:
        late = repair.makespan - plan.makespan
        figures = [
            ("Ends at", f"{repair.makespan:,}"),
            ("Against the plan", f"{abs(late):,} {'later' if late > 0 else 'sooner'}" if late else "as planned"),
            ("Operations moved", f"{repair.retimed:,} of {len(repair.operations):,}"),
            ("of them in another order", f"{repair.resequenced:,}"),
            ("Found in", f"{repair.ms:,} ms"),
        ]
        charts.append(Chart(title=title, pointer=pointer, figures=figures))
        label = f"{title}: ends at {repair.makespan:,}, {count_of(repair.retimed, 'operation')} moved"
        choices.append({"id": id, "label": label, "grants": True})
    quotes = [
        Quote(
            label=words.by or "Somebody",
            role="validator, refused it" if words.by in VALIDATORS else "sent it back",
            pointer=f"/feedback/{number}/text",
        )
        for number, words in enumerate(feedback)
    ]
    return Card(
        title=f"Machine {down.machine} is down: choose how {name} goes on",
        summary=summary,
        resource=f"{name}, {count_of(len(now.shop.operations), 'operation')}",
        risk="medium",
        reasons=reasons,
        charts=charts,
        question={"text": "Which schedule goes to the shop floor?", "choices": choices},
        quotes=quotes,
    )


def displaced_jobs(now: Situation) -> list[int]:
    """Return the jobs that are not to move and do: the breakdown itself holds them up."""
    moved = {now.shop.job[op] for op, (start, _) in now.fixed.items() if start != now.planned[op]}
    return sorted(moved.intersection(now.still))
