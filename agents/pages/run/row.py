"""The first statement of a run's page: the run's row with the totals over all its checkpoints and gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BigIntegerField, Exists, JSONField, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, JSONObject
from django.http import Http404, HttpRequest
from django.utils import timezone

from agents.models.wait import UNMET
from agents.pages.run.facts import TimelineFork
from agents.runs.course import WAY_SQL, Course, course_of
from agents.serving.missing_workers import SERVED, Service
from approvals.views.access import reader_of
from checkpoints.access.permissions import REWIND_RUN, Person, PersonKind, kind_of, teams_where
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.values.checkpoint_kinds import ASIDE

KIN = 500  # other runs of a lineage that are read
CHILDREN = 200  # runs that it started that are read
_LIVE = ", ".join(f"'{status}'" for status in Run.LIVE)
_GATES = "FROM approvals_gate g WHERE g.run_id = r.id AND g.status = 'open' AND r.team_id = checkpoints_run.team_id"
# The runs that it started, those that ask before the newest, and where it stands among those who started it.
_CHILDREN = f"""
'children', (
  SELECT jsonb_agg(to_jsonb(c)) FROM (
    SELECT r.id AS run, r.title, r.status, r.reason, r.next_step, p.agent, l.step, l.ordered,
      r.frozen_at IS NOT NULL AS frozen, p.external,
      (SELECT coalesce(jsonb_agg(seq), '[]') FROM checkpoints_checkpoint
        WHERE id = ANY(l.landings) AND run_id = l.parent_id) AS landed,
      EXISTS (SELECT FROM checkpoints_checkpoint WHERE id = ANY(l.landings) AND run_id <> l.parent_id) AS counted_on,
      l.step = checkpoints_run.next_step AND EXISTS (
        SELECT FROM checkpoints_checkpoint b WHERE b.id = l.base AND NOT EXISTS (
          SELECT FROM checkpoints_checkpoint s WHERE s.run_id = checkpoints_run.id AND s.seq > b.seq
          AND s.kind NOT IN ({", ".join(f"'{kind}'" for kind in ASIDE)}))) AS begun,
      (SELECT coalesce(jsonb_agg(jsonb_build_array(g.id, g.title, g.checkpoint) ORDER BY g.id), '[]')
        {_GATES}) AS gates,
      coalesce(r.head::text, '') AS head,
      r.awaited > 0 OR EXISTS (
        SELECT FROM agents_wait w WHERE w.run_id = r.id AND w.step = r.next_step AND w.head = r.head
        AND {UNMET}) AS waits
    FROM agents_childlink l JOIN checkpoints_run r ON r.id = l.run_id JOIN checkpoints_plan p ON p.id = r.plan_id
    WHERE l.parent_id = checkpoints_run.id
    ORDER BY r.status IN ({_LIVE}) AND EXISTS (SELECT {_GATES}) DESC, l.id DESC LIMIT {CHILDREN}) c),
'forked_at', (
  SELECT jsonb_agg(DISTINCT b.seq) FROM checkpoints_run f JOIN checkpoints_checkpoint b ON b.id = f.forked_from
  WHERE f.lineage = checkpoints_run.lineage AND f.forked_from IS NOT NULL AND b.run_id = checkpoints_run.id),
'among', (
  SELECT jsonb_build_array(min(run_id), max(run_id)) FROM agents_childlink WHERE parent_id = checkpoints_run.id),
'counts', (
  SELECT jsonb_object_agg(status, number) FROM (
    SELECT r.status, count(*) AS number FROM agents_childlink l JOIN checkpoints_run r ON r.id = l.run_id
    WHERE l.parent_id = checkpoints_run.id GROUP BY 1) c),
'above', (
  WITH RECURSIVE up AS (
    SELECT checkpoints_run.id AS child, checkpoints_run.parent_id AS id, 1 AS number
    UNION ALL
    SELECT r.id, r.parent_id, number + 1 FROM up JOIN checkpoints_run r ON r.id = up.id)
  SELECT jsonb_agg(jsonb_build_array(up.id, p.agent, l.step, beside.before, beside.number) ORDER BY up.number DESC)
  FROM up JOIN agents_childlink l ON l.run_id = up.child
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE o.id <= l.id) AS before, count(*) AS number FROM agents_childlink o
    WHERE o.parent_id = up.id AND (o.base, o.step) = (l.base, l.step)) beside
  JOIN checkpoints_run r ON r.id = up.id JOIN checkpoints_plan p ON p.id = r.plan_id),
'turns_of_step', (
  SELECT jsonb_agg(seq) FROM checkpoints_checkpoint WHERE run_id = checkpoints_run.id
  AND step = checkpoints_run.next_step AND kind IN ('step', 'gate', 'reused'))
"""  # noqa: S608 - constants
_WHOLE = f"""(SELECT jsonb_build_object({WAY_SQL}, {_CHILDREN},
'took', (SELECT sum(took_us) FROM checkpoints_checkpoint WHERE run_id = checkpoints_run.id),
'reused', (SELECT count(*) FROM checkpoints_checkpoint WHERE run_id = checkpoints_run.id AND kind = 'reused'),
'held', (SELECT extract(epoch FROM sum(upper(held) - lower(held))) FROM unnest((
  SELECT range_agg(tstzrange(opened_at, coalesce(closed_at, statement_timestamp())))
  FROM approvals_gate WHERE run_id = checkpoints_run.id)) held),
'pruned', EXISTS (SELECT FROM checkpoints_gap WHERE run_id = checkpoints_run.id),
'failed', EXISTS (SELECT FROM agents_failure WHERE run_id = checkpoints_run.id),
'served', (SELECT jsonb_build_array(there, heard) FROM (SELECT checkpoints_run.plan_id AS id) p
  CROSS JOIN LATERAL ({SERVED}) s),
'origin', (SELECT jsonb_build_array(run_id, seq) FROM checkpoints_checkpoint WHERE id = checkpoints_run.forked_from)
))"""  # noqa: S608 - constants
WHOLE = RawSQL(_WHOLE, (), output_field=JSONField())  # noqa: S611 - constants


class Ancestor(NamedTuple):
    """A run above this one, its step, and which of that step's children leads here."""

    run: int
    agent: str
    step: str
    number: int
    total: int


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that another started, as it is now.

    `landed`: the numbers of the checkpoints of its parent whose step counts on it; `counted_on`: so does a step that
    another run of the lineage has saved; `begun`: the step at hand has begun it; `gates`: the id and title of each gate
    that it asks at, and the state on which it was asked; `waits`: for a time, a signal or its own children.
    """

    run: int
    title: str
    agent: str
    status: str
    reason: str
    next_step: str
    step: str
    ordered: str
    frozen: bool
    external: bool  # its program is elsewhere: titles and reasons are that program's words
    landed: Sequence[int] = ()
    counted_on: bool = False
    begun: bool = False
    gates: Sequence[tuple[int, str, str]] = ()
    head: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with its plan, team and starter, and the totals over all its checkpoints and gates."""

    run: Run
    now: datetime
    may_move: bool  # the reader may rewind, edit, fork, cancel and settle it
    took: timedelta  # by its steps, on every branch
    reused: int  # steps that did not have to run
    time_at_gates: timedelta  # at gates, open ones up to now
    served: Service  # whether a worker serves it
    failed: bool  # whether an attempt failed
    pruned: bool  # whether retention removed something of it
    course: Course
    kin: Sequence[TimelineFork]
    origin: str  # of a fork: "R-7, checkpoint 3"
    forked_at: Sequence[int] = ()  # the numbers of its checkpoints that forks began from
    children: Sequence[StartedRun] = ()  # those that ask, then the others; newest first
    child_counts: Mapping[str, int] = field(default_factory=dict)  # of them all, by status
    among: tuple[int, int] | None = None  # the first and the last of them all
    above: Sequence[Ancestor] = ()  # the runs from the first one to the one that started it
    turn: int = 1  # how often the next step will have run on the path


def run_read_or_404(request: HttpRequest, run_id: int) -> RunRow:
    """Return the run, if the reader may see it. One statement."""
    reader = reader_of(request)
    found = _visible(run_id, reader.pk, kind=kind_of(reader))
    if not found:
        raise Http404("No such run")
    return build_row(found[0])


@prepared_statement
def _visible(run: Any, reader: Any, *, kind: PersonKind) -> QuerySet[Run]:
    """Read a run with the columns that `build_row` needs, if the reader may see it."""
    seeing = kind.person(reader)
    return annotated(Run.objects.visible_to(seeing), seeing).filter(pk=run)


def read_again(run: Run, reader: User) -> RunRow:
    """Read a run again, as it is now."""
    return build_row(annotated(Run.objects.all(), reader).get(pk=run.pk))


def annotated(runs: QuerySet[Run], reader: User | Person) -> QuerySet[Any, Any]:
    """Annotate runs with the columns that `build_row` needs."""
    members = teams_where(reader, REWIND_RUN).filter(pk=OuterRef("team_id"))
    return runs.select_related("plan", "team", "started_by").annotate(
        may_move=Exists(members), kin=ArraySubquery(_kin(reader)), whole=WHOLE
    )


def _kin(reader: User | Person) -> QuerySet[Any, Any]:
    """Select the other runs of the lineage, in the form of the index of forks."""
    lineage = Coalesce(OuterRef("lineage"), OuterRef("pk"), output_field=BigIntegerField())
    # The root is found by its key and its forks by their index.
    others = Run.objects.visible_to(reader).filter(Q(pk=lineage) | Q(lineage=lineage, forked_from__isnull=False))
    columns = JSONObject(
        run="pk", forked_from="forked_from", status="status", at="created_at", title="title",
        first="started_by__first_name", last="started_by__last_name", username="started_by__username", by="started_as",
    )  # fmt: skip
    return others.exclude(pk=OuterRef("pk")).order_by("pk").values(one=columns)[:KIN]


def build_row(run: Any) -> RunRow:
    """Build a RunRow from a run that `annotated` read."""
    whole, origin = run.whole, run.whole["origin"]
    has_worker, heard = whole["served"]
    return RunRow(
        run=run,
        now=timezone.now(),
        may_move=run.may_move,
        took=timedelta(microseconds=int(whole["took"] or 0)),
        reused=int(whole["reused"]),
        time_at_gates=timedelta(seconds=float(whole["held"] or 0)),
        served=Service(has_worker, datetime.fromisoformat(heard) if heard else None),
        failed=whole["failed"],
        pruned=whole["pruned"],
        course=course_of(run, whole),
        kin=[_kin_of(item) for item in run.kin],
        forked_at=whole["forked_at"] or (),
        children=[StartedRun(**child) for child in whole["children"] or ()],
        child_counts=whole["counts"] or {},
        among=whole["among"],
        above=[Ancestor(*item) for item in whole["above"] or ()],
        turn=1 + len(course_of(run, whole).on_path(whole["turns_of_step"] or ())),
        origin=f"R-{origin[0]}, checkpoint {origin[1]}" if origin else "",
    )


def _kin_of(row: dict[str, Any]) -> TimelineFork:
    name = f"{row['first'] or ''} {row['last'] or ''}".strip() or row["username"] or ""
    starter = name or ("Holdpoint" if row["by"] == "system" else row["by"].partition(":")[2] or row["by"])
    at = datetime.fromisoformat(row["at"])
    return TimelineFork(
        row["run"], (row["forked_from"] or "").replace("-", ""), row["status"], at, starter, row["title"]
    )
