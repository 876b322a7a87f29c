"""The doorbell: the signal that a run has work again. It carries the run's id and no authority.

`run_needs_attention` is sent after commit with `run_id`, its `plan` and its `priority`. A receiver may enqueue the run;
the sweeper finds what a crash dropped.
"""

from django.dispatch import Signal

run_needs_attention = Signal()
