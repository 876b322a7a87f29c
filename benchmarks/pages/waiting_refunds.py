"""Runs of the refunds agent that a real worker brought to their gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.parts.relays import until
from benchmarks.parts.scratch import ROOT

if TYPE_CHECKING:
    from django.contrib.auth.models import User

AGENTS = "benchmarks.parts.agents,agents.examples.refunds"
MAILS = ROOT / "agents" / "examples" / "refunds" / "mails"


def wait_at_gates(ann: User, count: int) -> list[tuple[int, int]]:
    """Start so many runs in Ann's team and wait for their gates; return (run, gate) for each."""
    from agents.definition import registry
    from agents.runs.start import start_run
    from approvals.models import Gate
    from checkpoints.actors import SYSTEM

    mail = registry.named("refunds").agent.inputs_from(MAILS / "01-frames-sent-back.eml")[0]["mail"]
    team = ann.groups.get()
    # No two are alike: the agent asks about a mail that it has seen before.
    given = [{"mail": {**mail, "raw": f"{mail['raw']}\nThe {number}.\n"}} for number in range(count)]
    runs = [start_run("refunds", each, by=SYSTEM, team=team).pk for each in given]

    def all_asked() -> dict[int, int]:
        found = dict(Gate.objects.filter(run_id__in=runs, status="open").values_list("run_id", "pk"))
        return found if len(found) == len(runs) else {}

    gates = until(all_asked, every=0.1)
    return [(run, gates[run]) for run in runs]
