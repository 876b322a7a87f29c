"""Predicts what a choice would do: what runs, may run, stands, is undone and cannot be undone.

`impact(history, target)` walks forward from where the run would go on, over values and digests and without running
anything. A field is known, novel (known to be unlike anything recorded) or unknown, with the steps on whose output it
depends. A step whose input is known and was recorded *stands*; one whose input is known and was not *will* run; any
other *may*. It promises nothing that the engine could break: where this package is unsure it says may.

It ends at the first step that certainly asks a person: what follows is another decision, with an impact of its own.
Effects that the choice leaves behind are listed to the end of the run all the same. It assumes that nothing fails: a
failed step, a provider that does not answer and a changed precondition ask a person again.

Pure: plain data in (`facts`), plain data out (`Impact`). No tables are read here. Whoever has the facts registers in
`approvals.consequences.impact_sources`.
"""

from .choices import impact
from .result import Impact, ImpactRow, ImpactVerdict

__all__ = ["Impact", "ImpactRow", "ImpactVerdict", "impact"]
