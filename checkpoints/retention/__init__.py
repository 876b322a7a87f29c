"""Retention: what of a run's history goes, what stays and why, and the removal itself.

`rules` decides on plain data. A *prune* is looked at first (`prunes.look`): one line a run says what goes. Applied, it
removes run by run, in transactions that hold the run's row for moments. The lines are the progress, so a prune that was
killed goes on where it was. What is removed is what the line *and* the rules, asked again, let go; docs/architecture.md
says why.
"""
