"""The texts of a drill: the warning before it begins, and its findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from checkpoints.runs.plans import PlanSpec

from .compare import Difference
from .exercise import ASKS, DIFFERS, MISSED, MOMENTS, WAITING, Fates, Kill, Undisturbed


def warning(plan: PlanSpec) -> list[str]:
    """Return the lines that warn of what a drill of this agent does to the world."""
    database: dict[str, Any] = settings.DATABASES["default"]
    where = f"{database['NAME']} on {database['HOST'] or 'this machine'}"
    effects = [step for step in plan.steps if step.kind == "effect"]
    lines = [
        f"A drill runs {plan.agent} {plan.version} some {3 * len(plan.steps) + 2} times in the database {where}.",
        'The runs stay there, titled "Drill: …" and cancelled.',
    ]
    if not effects:
        return [*lines, "It has no effects."]
    lines.append("Each run really performs its effects, on whatever this process is configured for, and then")
    lines.append("takes back what can be undone, where somebody named with --as may rewind runs:")
    fates = {step.name: "cannot be undone" if step.irreversible else f"is undone by {step.undo}" for step in effects}
    return [*lines, *(f"  {name:<20} {fate}" for name, fate in fates.items())]


def table(kills: Sequence[Kill]) -> list[str]:
    """Return one line for each step of the run, one column for each moment."""
    rows = [["step", "", *MOMENTS]]
    for first in range(0, len(kills), len(MOMENTS)):
        row = kills[first : first + len(MOMENTS)]
        rows.append([row[0].target.step, row[0].target.what, *(kill.word for kill in row)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def findings(kills: Sequence[Kill], undisturbed: Undisturbed) -> list[str]:
    """Return the lines about faults, then about questions to people and places that were not compared."""
    lines = [f"{item.step or 'The run'}, undisturbed: {item.words}." for item in undisturbed.unsteady]
    for kill in kills:
        if kill.word not in (DIFFERS, MISSED):
            continue
        lines.append(f"{kill.target.step}, killed {kill.moment} (run {kill.run}):")
        for difference in kill.differences:
            blamed = f"{difference.step}: " if difference.step and difference.step != kill.target.step else ""
            lines.append(f"  {blamed}{difference.words}")
    asking = list(dict.fromkeys(kill.target.step for kill in kills if kill.word == ASKS))
    if asking:
        names = ", ".join(asking)
        lines.append(
            f"A person is asked when a worker dies in {names}: nobody else can tell whether it happened. "
            "An effect that is idempotent or readable asks nobody."
        )
    if any(kill.target.what == WAITING["wait"] for kill in kills):
        lines.append("What it waits for came at once: times passed, and signals were sent as --signals says.")
    if undisturbed.record.children:
        agents = ", ".join(sorted({agent for agent, _ in undisturbed.record.children}))
        lines.append(
            f"Left out: the runs of {agents} that it starts. They were taken on, counted and undone with it, but no "
            "worker of theirs was killed, and their states were not compared. Drill each agent by itself."
        )
    if undisturbed.natural:
        places = ", ".join(undisturbed.natural)
        lines.append(f"Not compared, because undisturbed runs differ there too: {places}.")
    return lines


def aftermath(fates: Fates, problems: Sequence[str]) -> list[str]:
    """Return the lines about the effects of all runs: taken back, or left as they are."""
    back = [f"{step} {count} times" for (step, status), count in sorted(fates.items()) if status == "undone"]
    stays = [f"{step} {count} times" for (step, status), count in sorted(fates.items()) if status in ("done", "kept")]
    lines = [f"Done and taken back: {', '.join(back)}."] if back else []
    lines += [f"Done, and left as it is: {', '.join(stays)}."] if stays else []
    return lines + list(problems)


def culprits(kills: Sequence[Kill], unsteady: Sequence[Difference]) -> list[str]:
    """List the steps that are not restartable; where a difference names none, the step that was killed."""
    named = [row.step for row in unsteady]
    for kill in kills:
        if kill.word in (DIFFERS, MISSED):
            named += [difference.step for difference in kill.differences if difference.step] or [kill.target.step]
    return sorted({name for name in named if name})
