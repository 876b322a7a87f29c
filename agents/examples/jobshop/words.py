"""The agent's texts about its schedules. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from approvals.cards.card import AnswerChoice, Question
from approvals.cards.chart import Chart
from approvals.cards.quote import Quote
from approvals.english import counted

from .feedback import VALIDATORS
from .state import Downtime, Feedback, Repair, Schedule

Figures = list[tuple[str, str]]
count = counted  # the steps call it so


def number(value: int) -> str:
    return f"{value:,}"


def figures(repair: Repair, plan: Schedule) -> Figures:
    """Return what is set side by side at the gate, as (label, figure)."""
    of = len(repair.operations)
    return [
        ("Ends at", number(repair.makespan)),
        ("Against the plan", against(repair, plan)),
        ("Operations moved", f"{number(repair.retimed)} of {number(of)}"),
        ("of them in another order", number(repair.resequenced)),
        ("Found in", f"{number(repair.ms)} ms"),
    ]


def against(repair: Repair, plan: Schedule) -> str:
    """`45 later`, `120 sooner`, `as planned`."""
    late = repair.makespan - plan.makespan
    return "as planned" if not late else f"{number(abs(late))} {'later' if late > 0 else 'sooner'}"


def two(plan: Schedule, local: Repair, whole: Repair) -> tuple[list[Chart], Question]:
    """Return the charts of the two schedules, and the question which of them it is to be."""
    each = (
        ("local", "Local repair", "/local_repair", local),
        ("global", "Global plan", "/global_plan", whole),
    )
    charts = [Chart(title=title, pointer=pointer, figures=figures(repair, plan)) for _, title, pointer, repair in each]
    choices: list[AnswerChoice] = [
        {"id": id, "label": label(title, repair), "grants": True} for id, title, _, repair in each
    ]
    return charts, {"text": "Which schedule goes to the shop floor?", "choices": choices}


def label(name: str, repair: Repair) -> str:
    """Describe a choice: what it is, when it ends, what it moves."""
    return f"{name}: ends at {number(repair.makespan)}, {count(repair.retimed, 'operation')} moved"


def summary(downtime: Downtime, plan: Schedule, local: Repair, whole: Repair, *, kept: Sequence[int]) -> str:
    """Return the agent's account of the two. `kept` are the jobs that were not to be moved."""
    asked = f" Kept as asked: {'job' if len(kept) == 1 else 'jobs'} {', '.join(map(str, kept))}." if kept else ""
    return (
        f"Machine {downtime.machine} stops at {number(downtime.since)} and is back at {number(downtime.until)}. "
        f"The plan ended at {number(plan.makespan)}. {local.how} {whole.how}{asked}"
    )


def reasons(
    plan: Schedule, local: Repair, whole: Repair, *, hit: int, broken: Sequence[int], unread: Sequence[str]
) -> list[str]:
    """Why a choice is not to be made lightly. `broken`: jobs that could not be kept as asked."""
    found = [f"{count(hit, 'operation')} planned while the machine is down"]
    if min(local.makespan, whole.makespan) > plan.makespan:
        found.append(f"Neither schedule ends by {number(plan.makespan)}, as planned")
    if local.makespan < whole.makespan:
        found.append("The global plan ends later than the local repair: its time was too short")
    found += [f"Job {job} cannot keep its times: the breakdown itself is in its way" for job in broken]
    if unread:
        found.append(f"No rule of the agent reads what {' and '.join(dict.fromkeys(unread))} wrote")
    return found


def quoted(feedback: Sequence[Feedback]) -> list[Quote]:
    """Quote what was said, as the gate shows it."""
    return [
        Quote(
            label=said.by or "Somebody",
            role="validator, refused it" if said.by in VALIDATORS else "sent it back",
            pointer=f"/feedback/{number}/text",
        )
        for number, said in enumerate(feedback)
    ]
