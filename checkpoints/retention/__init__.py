"""Retention: decides which checkpoints of a run to remove and why the others stay, and removes them.

`rules` decides on plain data. A *prune* begins as a dry run (`prunes.look`): one line per run lists what to remove.
Applied, it removes run by run, in transactions that lock the run's row for moments. The lines are the progress, so a
killed prune continues where it was. A checkpoint is removed only if the line lists it *and* the rules, asked again,
allow it; docs/adr/0024-retention-leaves-gaps.md says why.
"""
