"""The activity of one run, read backwards along an index, a page at a time: of one family, or by words.

A page searches at most LOOKED events; if that was not enough it returns the place to continue from,
so it costs the same however long the run is and however rare the matches are. Saved checkpoints come from their
own rows: there are so many of them that no index of the events holds theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q

from approvals.audit import event_words
from approvals.audit.event_words import ROUTINE, Happening
from checkpoints.audit.filters import AuditFilters
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import decode_canonical

PAGE = 20
LOOKED = 2_000
SAVES = "saves"
EVERY = "all"
FAMILIES = (
    ("", "What matters"),
    ("decisions", "Decisions"),
    ("effects", "Effects"),
    ("gates", "Gates"),
    ("people", "People"),
    (SAVES, "Saves"),
    (EVERY, "Everything"),
)
_KINDS = {
    "decisions": Q(kind__startswith="decision.")
    | Q(kind__in=("gate.decided", "gate.edited", "gate.lapsed", "gate.undone")),
    "effects": Q(kind__startswith="effect."),
    "gates": Q(kind__startswith="gate."),
    "people": Q(actor__startswith="user:"),
    "": ~Q(kind__in=ROUTINE),
}


@dataclass(frozen=True, slots=True)
class ActivityFilters:
    """The filters: a family, words, and the place to continue below (an event's id; of saves a number); 0: none."""

    family: str = ""
    words: str = ""
    before: int = 0

    @property
    def label(self) -> str:
        """Return the label of the family."""
        return str(dict(FAMILIES)[self.family])

    def query(self, **more: object) -> str:
        """Return the filters as a query string, with `more` set over them; empty without filters."""
        asked = {"family": self.family, "words": self.words, "before": self.before} | more
        result = urlencode({name: value for name, value in asked.items() if value})
        return f"?{result}" if result else ""


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """A page of activity, the newest first, and the start of the next page; 0 if there is none."""

    happenings: Sequence[Happening]
    next: int = 0


def page(run: Run, asked: ActivityFilters) -> ActivityPage:
    """Return the newest matches, or those below a place. At most two statements."""
    if asked.family == SAVES:
        return _saves(run, asked)
    own = Event.objects.sealable().filter(run_id=run.pk).order_by("-id")
    own = own.filter(pk__lt=asked.before) if asked.before else own
    looked = list(own.values_list("pk", flat=True)[: LOOKED + 1])
    fits = Event.objects.filter(pk__in=looked[:LOOKED]).filter(_KINDS.get(asked.family, Q()))
    found = list(AuditFilters(words=asked.words).matching(fits).select_related("words").order_by("-id")[: PAGE + 1])
    return of_events(found, run, next=looked[LOOKED - 1] if len(looked) > LOOKED else 0)


def of_events(events: Sequence[Event], run: Run, *, next: int = 0) -> ActivityPage:
    """Make a page of these events of a run, which may be one more than it holds; `next` if there is more to search."""
    shown, titles = events[:PAGE], spec_of(run.plan).titles
    return ActivityPage([happening(event, titles) for event in shown], shown[-1].pk if len(events) > PAGE else next)


def _saves(run: Run, asked: ActivityFilters) -> ActivityPage:
    """Return the checkpoints of a run. Words are searched in the names of their steps and kinds."""
    own = Checkpoint.objects.filter(run=run).order_by("-seq")
    own = own.filter(seq__lt=asked.before) if asked.before else own
    rows = list(own.values_list("seq", "at", "kind", "step")[: LOOKED if asked.words else PAGE + 1])
    words = asked.words.lower().split()
    found = [row for row in rows if all(word in f"{row[2]} {row[3]}".lower() for word in words)]
    lines = [_saved(run, *row) for row in found[:PAGE]]
    if len(found) > PAGE:
        return ActivityPage(lines, found[PAGE - 1][0])
    return ActivityPage(lines, rows[-1][0] if asked.words and len(rows) == LOOKED else 0)


def _saved(run: Run, seq: int, at: object, kind: str, step: str) -> Happening:
    title = spec_of(run.plan).title_of(step)
    if not step:
        words = f"saved checkpoint {seq} ({kind})"
    elif kind in ("step", step):
        words = f"saved checkpoint {seq} after “{title}”"
    else:
        words = f"saved checkpoint {seq} after “{title}” ({kind})"
    return Happening(at, "checkpoint.saved", run.plan.agent, words)  # type: ignore[arg-type]


def happening(event: Event, titles: Mapping[str, str]) -> Happening:
    """Put one event in words."""
    words = getattr(event, "words", None)
    return event_words.tell(
        at=event.at,
        kind=event.kind,
        who=event.actor_name or event.actor,
        data=decode_canonical(bytes(event.data)),
        text=bytes(words.text).decode(errors="replace") if words else "",
        titles=titles,
    )
