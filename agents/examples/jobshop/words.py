"""The agent's texts about its schedules. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from approvals.cards.card import Question
from approvals.cards.chart import Chart
from approvals.cards.quote import Quote
from approvals.english import count_of

from .feedback import VALIDATORS
from .state import Downtime, Feedback, Repair, Schedule


def compare(plan: Schedule, local: Repair, whole: Repair) -> tuple[list[Chart], Question]:
    """Return the charts of the two schedules, and the question which of them it is to be."""
    both = (
        ("local", "Local repair", "/local_repair", local),
        ("global", "Global plan", "/global_plan", whole),
    )
    charts = [Chart(title=title, pointer=at, figures=list_figures(repair, plan)) for _, title, at, repair in both]
    return charts, {
        "text": "Which schedule goes to the shop floor?",
        "choices": [
            {
                "id": id,
                "label": f"{title}: ends at {repair.makespan:,}, {count_of(repair.retimed, 'operation')} moved",
                "grants": True,
            }
            for id, title, _, repair in both
        ],
    }


def list_figures(repair: Repair, plan: Schedule) -> list[tuple[str, str]]:
    """Return what is set side by side at the gate, as (label, figure)."""
    late = repair.makespan - plan.makespan
    return [
        ("Ends at", f"{repair.makespan:,}"),
        ("Against the plan", f"{abs(late):,} {'later' if late > 0 else 'sooner'}" if late else "as planned"),
        ("Operations moved", f"{repair.retimed:,} of {len(repair.operations):,}"),
        ("of them in another order", f"{repair.resequenced:,}"),
        ("Found in", f"{repair.ms:,} ms"),
    ]


def summarise(downtime: Downtime, plan: Schedule, local: Repair, whole: Repair, *, kept: Sequence[int]) -> str:
    """Return the agent's account of the two. `kept` are the jobs that were not to be moved."""
    asked = f" Kept as asked: {'job' if len(kept) == 1 else 'jobs'} {', '.join(map(str, kept))}." if kept else ""
    return (
        f"Machine {downtime.machine} stops at {downtime.since:,} and is back at {downtime.until:,}. "
        f"The plan ended at {plan.makespan:,}. {local.how} {whole.how}{asked}"
    )


def list_reasons(
    plan: Schedule, local: Repair, whole: Repair, *, hit: int, broken: Sequence[int], unread: Sequence[str]
) -> list[str]:
    """Say why a choice is not to be made lightly. `broken`: jobs that could not be kept as asked."""
    reasons = [f"{count_of(hit, 'operation')} planned while the machine is down"]
    if min(local.makespan, whole.makespan) > plan.makespan:
        reasons.append(f"Neither schedule ends by {plan.makespan:,}, as planned")
    if local.makespan < whole.makespan:
        reasons.append("The global plan ends later than the local repair: its time was too short")
    reasons += [f"Job {job} cannot keep its times: the breakdown itself is in its way" for job in broken]
    if unread:
        reasons.append(f"No rule of the agent reads what {' and '.join(dict.fromkeys(unread))} wrote")
    return reasons


def quote_feedback(feedback: Sequence[Feedback]) -> list[Quote]:
    """Quote what was said, as the gate shows it."""
    return [
        Quote(
            label=said.by or "Somebody",
            role="validator, refused it" if said.by in VALIDATORS else "sent it back",
            pointer=f"/feedback/{number}/text",
        )
        for number, said in enumerate(feedback)
    ]
