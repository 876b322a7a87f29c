"""What must hold of a run at rest, whatever crashed on the way. Each complaint is a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from agents.models import Effect
from agents.session import run_path
from agents.session.run_path import RunPath
from approvals.models import Gate, Outcome
from checkpoints import store
from checkpoints.audit import verify_runs
from checkpoints.models import Event, Run

from .outside_world import Outside, message_id

HAPPENED = ("done", "kept")


def complaints(run: Run, outside: Outside) -> Iterator[str]:
    path = RunPath.to(store.load(run).id)
    yield from (str(problem) for problem in verify_runs.verify_run(run))
    yield from _refunds(run, path, outside)
    yield from _mails(run, outside)
    yield from _settled(run, path)
    yield from _events(run)


def _refunds(run: Run, path: RunPath, outside: Outside) -> Iterator[str]:
    """One refund for each approval that stands; every other is cancelled; each belongs to its effect."""
    made = outside.refunds_of(run.pk)
    rows = {row.key: row for row in Effect.objects.filter(run=run, step="pay", undoes=None)}
    for key in made.keys() - rows.keys():
        yield f"a refund under the key {key[:8]} that no effect has"
    for key, row in rows.items():
        stands = path.holds(row.landings) and row.status in HAPPENED
        status = made[key]["status"] if key in made else "absent"
        if (status == "succeeded") != stands:
            yield f"pay {key[:8]} is {row.status}, {'on' if stands else 'off'} the path, and its refund is {status}"
    most = outside.most_at_once(run.pk)
    if most > 1:
        yield f"{most} refunds stood side by side"
    approvals = _standing_approvals(run, path)
    given = [each for each in made.values() if each["status"] == "succeeded"]
    if len(given) != (approvals if run.status == "completed" else 0):
        yield f"{len(given)} refunds given for {approvals} standing approvals of a {run.status} run"
    payment = store.load(run).state["payment"]
    if run.status == "completed" and [each["amount"] for each in given] != [payment["amount"]]:
        yield f"the state says {payment}, the provider {given}"


def _standing_approvals(run: Run, path: RunPath) -> int:
    """The agreements on the path whose payment was done: each is one refund, and there is one."""
    settled = Outcome.objects.filter(gate__run=run, gate__step="review", gate__checkpoint__in=path.settled())
    agreed = settled.filter(kind__in=("approved", "edited"), gate__kind="review")
    return 1 if agreed.exists() or _reused(run, path) else 0


def _reused(run: Run, path: RunPath) -> bool:
    return any(place.kind == "reused" and place.step == "review" for place in path)


def _mails(run: Run, outside: Outside) -> Iterator[str]:
    """Every reply that is on record went out once, and no other."""
    sent = outside.mails_by_id()
    for row in Effect.objects.filter(run=run, step="reply", undoes=None):
        times = sent[message_id(row)]
        if times != (1 if row.status in HAPPENED else 0):
            yield f"reply {row.key[:8]} is {row.status} and went out {times} times"


def _settled(run: Run, path: RunPath) -> Iterator[str]:
    """It has ended with nothing open, or it waits for somebody who can be named."""
    asking = list(Gate.objects.open().filter(run=run).values_list("title", flat=True))
    if run.status == "waiting":
        if len(asking) != 1 or not asking[0]:
            yield f"it waits for {asking}"
        return
    if run.status not in ("completed", "failed", "cancelled"):
        yield f"it is {run.status} at {run.next_step}: {run.reason}"
    if asking:
        yield f"it is {run.status}, and still asks {asking}"
    left = run_path.of_run(run.pk, path)
    if left:
        yield f"it is {run.status}, and left {[f'{row.step} {row.status}' for row in left]}"
    doubtful = Effect.objects.filter(run=run, status__in=("intended", "unknown")).values_list("step", "status")
    if doubtful:
        yield f"it is {run.status}, and nobody knows of {list(doubtful)}"


def _events(run: Run) -> Iterator[str]:
    """The last event of each effect is what its row says."""
    for row in Effect.objects.filter(run=run):
        said = Event.objects.filter(subject=row.subject).order_by("pk").values_list("kind", flat=True)
        if not said or list(said)[-1] != f"effect.{row.status}":
            yield f"{row.step} {row.key[:8]} is {row.status}; its events are {list(said)}"
