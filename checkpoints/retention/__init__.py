"""Retention: what of a run's history goes, what stays and why, and the removal itself.

A *policy* (of an agent, or the default) keeps by age, by count and by milestone; what any rule keeps stays. A *hold*
keeps above all rules. And whatever the policy says, that stays which a run needs to go on: its head, the states from
which effects are undone, what people changed, and in a live run its gates and where its steps were last started.

`rules` decides on plain data. A *prune* is looked at first (`prunes.look`): one line a run says what goes. Applied, it
removes run by run, in transactions that hold the run's row for moments: every survivor whose base goes is rewritten
as an anchor, the range leaves a *gap* that keeps the headers, and chunks that nothing names any more are freed. The
lines are the progress, so a prune that was killed goes on where it was, under the policy that was shown.

A range is removed by what the line says *and* the rules say again under the run's lock. So what was saved, held or
moved since is never removed unseen, and whoever makes a hold, which takes the same lock, either comes first and wins
or is told what took the checkpoint.
"""
