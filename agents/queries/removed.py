"""What retention removed of a run, between the checkpoints that a window of its timeline shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents.presentation.timeline.facts import TimelineGap
from checkpoints.models import Checkpoint, Gap, Run


def pruned_of(run: Run, window: Sequence[Checkpoint]) -> Iterator[TimelineGap]:
    """Yield the gaps before and between the window's checkpoints, adjacent ones joined."""
    upto = window[-1].seq if window else run.seq + 1
    gaps = list(Gap.objects.filter(run=run, first_seq__lt=upto).defer("headers").order_by("first_seq"))
    if not gaps:
        return
    older = Checkpoint.objects.filter(run=run, seq__lt=window[0].seq if window else upto).order_by("-seq")
    since = older.values_list("seq", flat=True).first() or 0
    found: TimelineGap | None = None
    for gap in gaps:
        if gap.last_seq <= since:
            continue
        if found and gap.first_seq == found.last + 1:
            found = found.joined(gap.last_seq, gap.at, str(gap.policy))
            continue
        if found:
            yield found
        found = TimelineGap(gap.first_seq, gap.last_seq, gap.at, gap.at, (gap.policy,), gap.by_name or gap.by)
    if found:
        yield found
