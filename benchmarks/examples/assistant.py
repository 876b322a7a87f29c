"""Measures the assistant's own cost of a turn: its code, the client and the store, without the endpoint's time.

    python -m benchmarks.examples.assistant [TURNS [ROUNDS]]

A turn is thinking and looking, two checkpoints, with a call that needs no approval; or, if the call writes a file, four
more checkpoints: a gate, its outcome, the effect, and its result for the model, without the person's time. The endpoint
is a separate process that answers at once with forty pieces of text and a call, and reports its own time; the rest
counts, including the real client's reading of the stream.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from benchmarks.examples.chat import WORDS
from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile, spread
from benchmarks.parts.people import make_person, make_team
from benchmarks.parts.scratch import ROOT, Scratch

AIM = 15.0  # ms
SAID = 500  # texts of a running step


def main(turns: int = 40, rounds: int = 5) -> None:
    """Print the figures and the aim."""
    with Scratch("agents.examples.assistant") as scratch:
        from agents.ringing import doorbell

        doorbell.silence()
        folder = scratch.home / "desk"
        folder.mkdir()
        (folder / "a.txt").write_text("x" * 1000)
        free = [took for _ in range(rounds) for took in _measured(folder, "list", turns)]
        gated = [took for _ in range(rounds) for took in _measured(folder, "write", turns // 4)]
        said = _texts()
    tenth = max(1, turns // 10)
    each = turns - 1  # the first turn of a run is left out
    first = statistics.median(took for n, took in enumerate(free) if n % each < tenth)
    last = statistics.median(took for n, took in enumerate(free) if n % each >= each - tenth)
    print(spread("a turn with a free call", free))
    print(f"  the first tenth of {turns} turns {first:.2f} ms, the last {last:.2f} ms: the conversation grows")
    print(spread("a turn with a write that is approved, without the person", gated))
    print(spread("a text of a running step, written and whispered", said))
    mark("the assistant's own part of a turn, p50", percentile(free, 50), "ms", most=AIM)


def _measured(folder: Path, call: str, turns: int) -> list[float]:
    """Measure each turn of a new run, in milliseconds without the endpoint's."""
    from django.conf import settings

    command = [sys.executable, "-m", "benchmarks.examples.chat", call, str(turns)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as endpoint:
        try:
            assert endpoint.stdout is not None
            url = endpoint.stdout.readline().strip()
            settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = f"{url}/v1", "none"
            settings.HOLDPOINT_ASSISTANT_FOLDER = str(folder)
            settings.HOLDPOINT_TIME_SLICE = 600.0
            took = _turns_taken()
            theirs = httpx.get(f"{url}/spent", trust_env=False).json()
        finally:
            endpoint.kill()
    return [mine - their / 1000 for mine, their in zip(took[:turns], theirs, strict=False)][1:]  # the first imports


def _turns_taken() -> list[float]:
    """Measure each turn's time in the runner, in milliseconds from its first line to the next's; people take none."""
    from agents.runner import engine
    from agents.runs.start import start_run
    from approvals.decisions import deciding
    from approvals.decisions.submission import Submission
    from approvals.models import Gate
    from checkpoints.actors import SYSTEM

    team = make_team()
    person = make_person("ann", team)
    run = start_run("assistant", {"task": "Do as the bench says."}, by=SYSTEM, team=team)
    CLOCK.begin()
    while run.status in run.LIVE:
        with CLOCK.running():
            engine.advance(run.pk)
        run.refresh_from_db()
        for gate in Gate.objects.open().filter(run=run):
            seen = bytes(gate.standing().digest)
            done = list(run.effects.values_list("pk", flat=True))  # the same command may be run twice
            deciding.decide(
                gate, Submission(verdict="approve", seen=seen, key=uuid.uuid4().hex, confirm=done), by=person
            )
            run.refresh_from_db()
    assert run.status == "completed", run.reason
    return [(after - before) * 1e3 for before, after in pairwise(CLOCK.marks)]


class Clock:
    """A clock that runs only while the runner works, with a mark at each turn's first line."""

    def __init__(self) -> None:
        self.marks: list[float] = []
        self.stood = 0.0  # seconds
        self._stopped = 0.0

    def begin(self) -> None:
        """Start over."""
        from checkpoints import crash_points

        if not self._stopped:
            crash_points.listen(self._pass)
        self.marks.clear()
        self.stood, self._stopped = 0.0, time.perf_counter()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the clock inside the block."""
        self.stood += time.perf_counter() - self._stopped
        yield
        self._stopped = time.perf_counter()

    def _pass(self, point: str, step: str, value: Any) -> None:
        if (point, step) == ("before_step", "think"):
            self.marks.append(time.perf_counter() - self.stood)


CLOCK = Clock()


def _texts() -> list[float]:
    """Measure each progress text of a running step, in milliseconds: one row, and one live message to the pages."""
    from django.contrib.auth.models import Group

    from agents.models import Spoken
    from agents.runs.start import start_run
    from approvals.live import ephemeral
    from checkpoints.actors import SYSTEM
    from checkpoints.store import claims

    run = start_run("assistant", {"task": "Speak."}, by=SYSTEM, team=Group.objects.get(name="Bench"))
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="bench", lease=600)
    assert claim is not None
    assert run.head is not None
    took, text = [], WORDS * 4
    for number in range(SAID):
        began = time.perf_counter()
        said = text[: 100 + number]
        assert Spoken.objects.say(run.pk, token=claim.token, base=run.head, step="think", attempt=1, text=said)
        ephemeral.whisper(ephemeral.SPOKEN, run.pk)
        took.append((time.perf_counter() - began) * 1e3)
    return took


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
