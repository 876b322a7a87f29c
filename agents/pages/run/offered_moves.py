"""The moves that a run's page offers: the order as it was typed, and its impact or why it cannot be done."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from agents.access import run_or_404
from agents.errors import ImpactChanged, NeedsConfirmation, OrderNotConfirmed, RewindRefused
from agents.moves import confirmation, impact
from agents.session.run_path import RunPath
from approvals.english import join_names, noun_for, quote_titles
from approvals.forms import names
from approvals.impact import Impact, ImpactRow
from approvals.impact.result import ENDING
from approvals.models import Decision, Gate
from approvals.policy import step_up
from approvals.presentation.drawing import impact_words
from approvals.presentation.drawing.impact_words import ImpactLine
from approvals.views.access import reader_of
from checkpoints.access.permissions import REWIND_RUN, may_in_team, say_missing_permission
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.sql import make_storable
from checkpoints.runs.plans import PlanSpec, spec_of
from checkpoints.values.checkpoint_kinds import EXECUTIONS

PREFIX = "state"  # of the names of the inputs in a state's form
LONGEST = 2_000  # characters of a reason


@dataclass(frozen=True, slots=True)
class ShownImpact:
    """An impact as a page draws it, with the text of the button that orders it."""

    impact: Impact
    heading: str
    commit: str
    people: ImpactLine | None = None

    @property
    def worded(self) -> impact_words.WordedImpact:
        """Return the impact for approvals/impact/impact.html."""
        return impact_words.drawn(self.impact, self.heading, people=self.people, at_gate=False)

    @property
    def digest(self) -> str:
        """Return, in hex, the digest that the form sends back, so that only what was shown is done."""
        return self.impact.digest()

    @property
    def grave(self) -> bool:
        """Tell whether it changes the outside world: something is undone or ended, or done once more."""
        ended = any(child.fate in ENDING for child in self.impact.children)
        return bool(self.impact.undone or self.impact.may_undone or self.impact.repeated or ended)

    @property
    def repeated(self) -> tuple[str, ...]:
        """Return the effects that cannot be undone and would be done once more."""
        return self.impact.called(self.impact.repeated)


@dataclass(frozen=True, slots=True)
class RewindOption:
    """One way to rewind, with its impact, or why it cannot be done."""

    way: RewindTarget
    chosen: bool
    shown: ShownImpact | None = None
    refused: str = ""


def allowed(run: Run, reader: User) -> bool:
    """Tell whether this person may rewind, edit, fork and settle the run."""
    return may_in_team(reader, run.team_id, REWIND_RUN)


def run_to_order(request: HttpRequest, run_id: int) -> tuple[Run, User]:
    """Return the run and the reader, who may rewind it. 404 if they may not see it, 403 if they may only see it."""
    run, reader = run_or_404(request, run_id), reader_of(request)
    if not allowed(run, reader):
        raise PermissionDenied(say_missing_permission(reader, REWIND_RUN, run.team))
    return run, reader


def ask_confirmation(request: HttpRequest, run: Run, reader: User) -> HttpResponse | None:
    """Redirect to the confirmation of who orders, and from there back here, before anything is typed.

    None where no policy of the run asks for it, where it was given lately, or where this account has nothing for it.
    """
    method = confirmation.needed(run)
    given = step_up.counts(step_up.of_session(request), by=reader, now=timezone.now(), asked=method or step_up.ANY)
    if not method or given or not step_up.possible(reader, method):
        return None
    return redirect(step_up.address(request.get_full_path(), method))


def panel(run: Run, checkpoint: Checkpoint, order: TypedOrder) -> dict[str, Any]:
    """Return the context of runs/rewind/panel.html."""
    return {
        "may_order": True,
        "asked": True,
        "options": options(run, checkpoint, to=order.to, why=order.why),
        "why": order.why,
        "order_key": order.key or uuid.uuid4().hex,
        "reads_why": any(step.feedback for step in spec_of(checkpoint.plan).steps),
    }


def options(run: Run, checkpoint: Checkpoint, *, to: int = 0, why: str = "") -> list[RewindOption]:
    """List the ways to rewind at a checkpoint, one of them chosen."""
    started = Checkpoint.objects.filter(run=run, next_step=checkpoint.step, pk=checkpoint.parent or checkpoint.pk)
    before = started.values_list("seq", flat=True).first() or 0
    asked = checkpoint.parent is not None and Gate.objects.filter(checkpoint=checkpoint.parent).exists()
    found = rewind_targets(checkpoint, spec_of(checkpoint.plan), before=before, asked=asked)
    chosen = to if to in [way.to for way in found] else found[-1].to if found else 0
    look = impact.rewinding(run, why)
    options = []
    for way in found:
        heading, people = f"If you rewind to checkpoint {way.to}", closing(run, way.to)
        shown, refused = attempt(partial(look, way.to), "Rewind", heading, people=people)
        options.append(RewindOption(way, way.to == chosen, shown, sentence(refused)))
    return options


def closing(run: Run, to: int) -> ImpactLine | None:
    """Return the line on the open gates that a move to the checkpoint `to`, or an edit of it, withdraws."""
    asked = Gate.objects.open().filter(run=run)
    if spec_of(run.plan).goes_on_asking:
        head = Checkpoint.objects.filter(run=run, seq=to).values_list("pk", flat=True).first()
        asked = asked.exclude(checkpoint__in=list(RunPath.to(head).asking()) if head else [])
    gates = list(asked.order_by("pk").values_list("pk", flat=True))
    votes = Decision.objects.filter(gate__in=gates, counts=True).approving().select_related("user")
    agreed = [decision.user.get_full_name() or decision.user.get_username() for decision in votes.order_by("pk")]
    return closing_line(gates, agreed)


def attempt(
    look: Callable[[], Impact], verb: str, heading: str, *, people: ImpactLine | None = None
) -> tuple[ShownImpact | None, RewindRefused | None]:
    """Return the impact, or why it cannot be done."""
    try:
        impact = look()
    except RewindRefused as refused:
        return None, refused
    return ShownImpact(impact, heading, button_words(verb, impact), people), None


def notice(refusal: RewindRefused) -> dict[str, Any]:
    """Return the context of runs/order/refusal.html."""
    changed = isinstance(refusal, (ImpactChanged, NeedsConfirmation))
    words = "Fix the marked fields. Your input is kept." if refusal.errors else str(refusal)
    title = "Nothing was done yet." if changed or refusal.errors else "Nothing was done."
    address = step_up.address("/", refusal.method) if isinstance(refusal, OrderNotConfirmed) else ""
    return {"refusal": {"title": title, "said": words, "tone": "hold" if changed or address else "stop", "to": address}}


def sentence(refused: RewindRefused | None) -> str:
    """Return why it cannot be done, unless single fields are at fault."""
    return str(refused) if refused and not refused.errors else ""


@dataclass(frozen=True, slots=True)
class RewindTarget:
    """One checkpoint to rewind to: `place` is "after" or "before"."""

    place: str
    to: int
    label: str
    step: str = ""  # the title of the step named in the label
    rest: str = ""


def rewind_targets(saved: Checkpoint, plan: PlanSpec, *, before: int, asked: bool = True) -> list[RewindTarget]:
    """List the ways to rewind at a checkpoint: go on from its state, or run the step that led to it again.

    `before` is the number of the checkpoint from which its step started, 0 where there is none in this run. `asked`:
    a gate had something to ask.
    """
    found = []
    step, gate = plan.title_of(saved.step), saved.kind == "gate"
    if saved.next_step and saved.kind in EXECUTIONS:
        effect = any(step.name == saved.step and step.kind == "effect" for step in plan.steps)
        keeps = "keeping what it did" if effect else "keeping what it wrote"
        keeps = keeps if not gate else "keeping its answer" if asked else ""
        found.append(RewindTarget("after", saved.seq, "After", step, keeps))
    elif saved.next_step:
        title = plan.title_of(saved.next_step)
        found.append(RewindTarget("after", saved.seq, "From this state, go on with", title))
    if before and saved.kind in EXECUTIONS:
        again = "and run it again" if not gate else "and ask again" if asked else "and check again"
        found.append(RewindTarget("before", before, "Before", step, again))
    return found


def button_words(verb: str, impact: Impact) -> str:
    """Return the button's text: "Rewind, undoing “Pay”", "Fork", "Rewind, undoing 2 effects, perhaps a third"."""
    lines = [verb]
    if impact.undone:
        lines.append(f"undoing {_effects(impact, impact.undone)}")
    if impact.may_undone:
        lines.append(f"perhaps undoing {_effects(impact, impact.may_undone)}")
    if impact.repeated:
        lines.append(f"repeating {quote_titles(impact.called(impact.repeated))}")
    return ", ".join(lines)


def _effects(impact: Impact, rows: Sequence[ImpactRow]) -> str:
    if len(rows) == 1:
        return quote_titles(impact.called(rows))
    return f"{len(rows)} effects"


def closing_line(gates: Sequence[int], agreed: Sequence[str]) -> ImpactLine | None:
    """Return the line on the gates that a move withdraws, whose approvals lapse; None where no gate is open."""
    if not gates:
        return None
    words = f"{noun_for(len(gates), 'gate')} {join_names([str(gate) for gate in gates])}"
    if agreed:
        approvals, lapse = noun_for(len(gates), "approval"), noun_for(len(gates), "lapses", "lapse")
        text = f"{words}; the {approvals} of {join_names(agreed)} {lapse}"
    else:
        text = f"{words} (not counted as {noun_for(len(gates), 'a rejection', 'rejections')})"
    return ImpactLine(effect="people", title="Withdraws", said=text)


@dataclass(frozen=True, slots=True)
class TypedOrder:
    """One order, given or only previewed. `at` is its checkpoint, `to` the one that a rewind goes to.

    `seen` is the hex digest of the impact that was shown; `texts` holds the input in the form of the state,
    by the names of its inputs; `sent_digest` is the digest of all that was sent.
    """

    kind: str
    at: int
    to: int = 0
    why: str = ""
    seen: str = ""
    confirm: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    title: str = ""
    version: str = ""
    config: str | None = None
    key: str = ""
    sent_digest: str = ""

    @property
    def once(self) -> str:
        """Return the key under which an order counts once; changed and sent again, as after Back, it is a new order."""
        return f"{self.key}.{self.sent_digest}" if self.key else ""


def order_of(request: HttpRequest, kind: str) -> TypedOrder:
    """Return the order in the form. Anything that is not a number reads as 0, which no checkpoint has."""
    sent = request.POST
    to = parse_number(sent.get("to", ""))
    return TypedOrder(
        kind=kind,
        at=parse_number(sent.get("at", "")) or to,
        to=to,
        why=sent.get("why", "").strip()[:LONGEST],
        seen=sent.get(f"seen.{to}", "") or sent.get("seen", ""),
        confirm=f"confirm.{to}" in sent,
        texts={name: str(text) for name, text in sent.items() if names.split(name)[0] == PREFIX},
        title=make_storable(sent.get("title", "").strip()[:200]),
        version=make_storable(sent.get("version", "").strip()),
        config=sent.get("config"),
        key=make_storable(sent.get("key", "")[:100]),
        sent_digest=_digest(request),
    )


def _digest(request: HttpRequest) -> str:
    lines = sorted((name, values) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken")
    return hashlib.sha256(repr([request.path, lines]).encode(errors="surrogatepass")).hexdigest()


def parse_number(text: str) -> int:
    """Parse a number in an address or a form; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
