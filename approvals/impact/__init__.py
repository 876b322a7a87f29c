"""What a choice would do, said before it is made: what runs, may run, stands, is undone and cannot be undone.

`impact(history, target)` walks forward from where the run would go on, over values and digests and without
running anything. A field is known, novel (known to be unlike anything recorded) or unknown, with the steps on whose
output it depends. A step whose input is known and was recorded *stands*; one whose input is known and was not
*will* run; any other *may*. Nothing is promised that the engine could break: where this package is unsure it says may.

It ends at the first step that certainly asks a person: what follows is another decision, with an impact of its own.
Effects that the choice leaves behind are named to the end of the run all the same. It speaks of runs in which
nothing fails: a step that fails, a provider that does not answer and a world that drifted ask a person anew.

Pure: plain data in (`facts`), plain data out (`Impact`). No tables are read here. `sources` is where whoever has
the facts offers them.
"""

from .predict import impact
from .result import Impact, ImpactRow, ImpactVerdict

__all__ = ["Impact", "ImpactRow", "ImpactVerdict", "impact"]
