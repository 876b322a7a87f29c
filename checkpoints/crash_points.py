"""Named crash points: no-ops, until a test or a drill turns one into a crash.

`HOLDPOINT_CRASH="after_effect@pay:kill:2"`: at the second hit of the point, counting those of the step `pay` alone,
the process is killed. The step and the hit may be left out: any step, the first hit. A fourth part is a file in
which the hits are counted, so that they are counted over all processes that share it and the point is passed
without harm once it has crashed.

- `kill`: SIGKILL, as a lost machine;
- `raise`: an exception that nothing in the runner catches;
- `fail`: an ordinary exception, as a bug just there would raise;
- `cut`: the connection to the database is lost after the statement ran: the database has done it, and the answer
  never arrives. Inside a transaction that statement is its COMMIT;
- `sleep`: an hour.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import OperationalError, connection

POINTS = (  # of a run
    "after_claim", "before_step", "after_step", "after_intent", "after_effect", "before_save", "after_save",
    "after_commit", "before_gate", "after_gate", "before_outcome", "after_outcome", "before_adopt", "before_settle",
    "before_undo", "after_undo_intent", "after_undo", "before_repair", "after_repair", "before_rewind", "after_rewind",
)  # fmt: skip
OF_WAITS = ("before_wait", "after_wait")  # of a step that waits for a time or a signal
OF_TIMERS = "after_timers"  # after runs were woken whose time has come, and before anybody is rung for
OF_CHILDREN = ("before_spawn", "after_spawn", "before_gather", "after_gather")  # of a step that starts runs
# of what follows from a run for its children: its worker passes them, or the sweeper
OF_ORDERS = ("before_order", "after_order", "beside_undo_child", "after_end_with", "before_let_go")
OF_SIGNALS = ("before_signal", "after_signal")  # of a signal that somebody sends, in its transaction
OF_WAKES = ("before_wake", "after_wake")  # of a timer that a person ends, in its transaction
OF_MID_STEP = ("before_mid_step", "after_mid_step")  # of a value that a step keeps before it ends
OF_HELD = ("before_restore", "beside_save")  # of what a step holds open, and of what is written beside its save
OF_DEFERRED = ("put_off", "before_flush", "after_flush")  # of checkpoints that were put off
# of gates that are open beside their run
OF_BESIDE = ("before_withdraw", "after_withdraw", "beside_asleep", "before_held", "after_held")
OF_SETTLING = ("before_settled", "after_settled", "before_undone", "after_undone")  # of gates with an undo window
OF_QUESTIONS = ("question_taken", "question_answered")  # of a worker that has an agent answer a question
OF_BULK = "bulk_item"  # after one gate of a bulk decision was decided or refused
OF_AUDITS = "audit_step"  # after the seals of one step of a verification were checked
OF_PRUNES = ("prune_removed", "prune_line_done", "prune_chunks")  # and "artifact_aside", of files
OF_UNNEEDED = "prune_unneeded"  # of other apps: after a batch of them was deleted, before its commit
LOST = "server closed the connection unexpectedly (a crash that was asked for)"
_hits: Counter[str] = Counter()
_listeners: list[Callable[[str, str, Any], None]] = []


class Crashed(BaseException):
    """Raised by a crash point whose action is `raise`; nothing in the runner catches it."""


def point(name: str, step: str = "", value: Any = None) -> None:
    """Crash here if HOLDPOINT_CRASH asks for it; otherwise do nothing. `value`: what the step's method returned."""
    for listener in _listeners:
        listener(name, step, value)
    wish = os.environ.get("HOLDPOINT_CRASH")
    if not wish:
        return
    place, action, *rest = wish.split(":", 3)
    wanted, _, of = place.partition("@")
    if wanted != name or (of and of != step):
        return
    if _hit(place, rest[1] if len(rest) > 1 else "") == int(rest[0] if rest else "1"):
        _act(action)


def listen(listener: Callable[[str, str, Any], None]) -> None:
    """Call `listener(name, step, value)` at every point that this process passes from now on, before it crashes."""
    _listeners.append(listener)


def _hit(place: str, file: str) -> int:
    """Count this hit; return its number."""
    if not file:
        _hits[place] += 1
        return _hits[place]
    with Path(file).open("ab") as counted:  # one byte a hit
        counted.write(b".")
        return counted.tell()


def _act(action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "sleep":
        time.sleep(3600)
    elif action == "fail":
        raise RuntimeError("a crash that was asked for")
    elif action == "cut":
        _cut()
    else:
        raise Crashed


def _cut() -> None:
    """Lose the connection. Raises OperationalError, here or from the COMMIT of the transaction that is open."""
    if not connection.in_atomic_block:
        _lose()
    commit, rollback = connection.commit, connection.rollback

    def forget() -> None:
        del connection.commit, connection.rollback

    def committed_unheard() -> None:
        forget()
        commit()
        _lose()

    def rolled_back() -> None:
        forget()
        rollback()

    connection.commit = committed_unheard  # type: ignore[method-assign]
    connection.rollback = rolled_back  # type: ignore[method-assign]


def _lose() -> None:
    connection.ensure_connection()
    connection.connection.close()  # psycopg's, under Django, which learns of it from the next statement
    raise OperationalError(LOST)
