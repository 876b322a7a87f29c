"""Every page on which an agent's words appear, for one run that stands at a gate and one that went through."""

from __future__ import annotations

from approvals.models import Gate
from checkpoints.models import Checkpoint, Run
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate

from .trickster_agent import ATTACK, SHORT

PARTS = ("status/", "preview/", "values/?at=/trick/text", "values/?at=/said")


def stories() -> tuple[Gate, Gate, Run]:
    """(a gate that asks about an action, one that asks a question, the run of the second)."""
    waiting = advance_to_rest(make_run("trickster"))
    through = advance_to_rest(make_run("trickster", team=waiting.team))
    standing = open_gate(through).standing().card.action("do")
    assert standing is not None
    edited = {**standing.arguments, "text": ATTACK + " edited", "amount": SHORT + "1"}
    decide(through, "edit", arguments={"do": edited}, comment=ATTACK)
    advance_to_rest(through)
    return open_gate(waiting), open_gate(through), through


def addresses(asked: Gate, question: Gate, run: Run) -> list[str]:
    """The pages, and the parts of pages, of these."""
    gates = [f"/gates/{pk}/" for pk in Gate.objects.filter(team=asked.team).values_list("pk", flat=True)]
    seqs = list(Checkpoint.objects.filter(run=run).values_list("seq", flat=True))
    runs = [f"/runs/{asked.run_id}/", f"/runs/{run.pk}/", *(f"/runs/{run.pk}/?at={seq}" for seq in seqs)]
    last = max(seqs)
    checkpoint = f"/runs/{run.pk}/checkpoints/{last}/"
    more = [checkpoint, *(f"{checkpoint}{what}" for what in ("edit/", "fork/", "value?at=/trick", "value/trick"))]
    more += [f"/runs/{run.pk}/{what}" for what in ("events/", "timeline/", "comparisons/?a=1&b=2")]
    return ["/", "/?queue=all", "/?queue=decided", "/runs/", *gates, *(g + part for g in gates for part in PARTS),
            *runs, *more, "/audit/"]  # fmt: skip
