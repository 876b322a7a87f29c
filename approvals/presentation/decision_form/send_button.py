"""Words the button that sends a decision: what it will do, with the amounts. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from approvals.cards.action import APPROVE, EDIT, LATER, REJECT, RESPOND, Action
from approvals.cards.card import Card
from approvals.consequences.verbs import third, with_amounts
from approvals.english import count_of, join_names
from approvals.presentation.decision_form.actions import pinned_of
from approvals.presentation.text import amounts, exact_call, untrusted
from checkpoints.runs.plans import PlanSpec

from .actions import values_of

SEND = "Send these verdicts"  # where an action has no verdict yet
STANDS = "finished actions are not undone"


def approving(card: Card, plan: PlanSpec, *, edited: bool, stands: Container[str] = (), votes: str = "") -> str:
    """Name an approval of everything: `Approve: pay the refund €5.25, reply to the customer (1 of 2)`.

    The card's own amount is named where no action has it; after an edit it is left out, as it may be wrong. For an
    external program the amount in its arguments counts. `stands`: effects done before, whose results are reused.
    """
    running = [action for action in card.actions if action.settled is None]
    does = deeds(card, plan, running, stands=stands)
    if stands and not does:
        return _with_votes(f"{_verb(edited, running)}: {STANDS}", votes)
    said = exact_call.amount(card, masked=exact_call.AT_GATE) if plan.external else card.amount
    amount = "" if edited else untrusted.plain(said, limit=40)
    of = f" {amount}" if amount and amount not in does else ""
    return _with_votes(f"{_verb(edited, running)}{of}: {does or 'the agent continues'}", votes)


def deciding(
    card: Card, plan: PlanSpec, verdicts: Mapping[str, str], *, stands: Container[str] = (), votes: str = ""
) -> str:
    """Name verdicts by action id: `Approve with edit: order the goods €12.00; reject 1`. `stands`: as `approving`."""
    said = [verdicts.get(action.id, "") for action in card.actions]
    if not all(said):
        return SEND
    running = [action for action in card.actions if verdicts[action.id] in (APPROVE, EDIT)]
    does = deeds(card, plan, running, stands=stands) or (STANDS if stands else "the agent continues")
    own = {action.effect for action in card.actions}
    parts = [f"{_verb(EDIT in said, running)}: {does}"] if running or set(card.allows) - own else []
    parts += [f"reject {said.count(REJECT)}"] if REJECT in said else []
    parts += [f"answer {said.count(RESPOND)} instead"] if RESPOND in said else []
    parts += [f"leave {said.count(LATER)} for later"] if LATER in said else []
    words = "; ".join(parts)
    return _with_votes(words[:1].upper() + words[1:], votes)


def answering(label: str, runs: str, *, votes: str = "") -> str:
    """Name one answer to a question: `Send “Yes, pay it” and run “Pay” (1 of 2)`."""
    words = f"Send “{untrusted.plain(label, limit=80)}”"
    return _with_votes(f"{words} and run {runs}" if runs else words, votes)


def deeds(card: Card, plan: PlanSpec, running: Sequence[Action], *, stands: Container[str] = ()) -> str:
    """Say what runs with these actions, by the titles of their steps; "" where nothing does.

    It names the amount that the agent pinned, but none of an external program, which might pin a wrong one.
    """
    said = []
    for effect, mine in _running(card, running, stands):
        title = untrusted.plain(plan.title_of(effect), limit=60)
        capitals = not (title[1:2].islower() or title[1:2] == " ")  # all of its first word
        does = title if capitals else title[:1].lower() + title[1:]
        if (count := len(mine)) > 1:
            does = f"{count_of(count, 'time')} {does}"
        known = [] if any(action.in_own_words(external=plan.external) for action in mine) else mine
        said.append(with_amounts(does, amounts_of(known)))
    return ", ".join(said)


def once(card: Card, plan: PlanSpec, *, stands: Container[str] = ()) -> str:
    """Say what approving everything does: `Pays a refund €5.25 and sends an e-mail, each once`; "Runs nothing".

    An external program's action titles are not used, but its steps' names. `stands`: as in `approving`.
    """
    said = []
    for effect, mine in _running(card, [action for action in card.actions if action.settled is None], stands):
        if plan.external:
            said.append(f"runs “{untrusted.plain(plan.title_of(effect), limit=60)}”")
            continue
        titles = list(dict.fromkeys(action.title for action in mine if action.title)) or [plan.title_of(effect)]
        said.append(with_amounts(join_names(third(title) for title in titles), amounts_of(mine)))
    if not said:
        return "Nothing runs. Finished actions are not undone" if stands else "Runs nothing"
    listing = join_names(said)
    return f"{listing[:1].upper()}{listing[1:]}, {'each once' if len(said) > 1 else 'once'}"


def _running(card: Card, running: Sequence[Action], stands: Container[str]) -> Iterator[tuple[str, list[Action]]]:
    """Yield (effect, the actions that it performs) for each effect that runs with these actions, without `stands`.

    An effect that belongs to no action runs whatever is decided about them.
    """
    own = {action.effect for action in card.actions}
    for effect in card.allows:
        mine = [action for action in running if action.effect == effect]
        if (mine or effect not in own) and effect not in stands:
            yield effect, mine


def amounts_of(running: Sequence[Action]) -> list[str]:
    """List the pinned amounts of the only action; none where there are several, each with its own."""
    if len(running) != 1:
        return []
    [action] = running
    if "amounts" not in action.derived:  # a page asks four times, and it takes the action's whole form
        pinned = pinned_of(action, mine=action.arguments, before=None, form=None, values=values_of(action))
        said = [amounts.written(pin.value, pin.unit) for pin in pinned if pin.unit]
        action.derived["amounts"] = list(filter(None, said))
    return list(action.derived["amounts"])


def _verb(edited: bool, running: Sequence[Action]) -> str:
    if running and all(action.asks_only for action in running):
        return "Answer"
    return "Approve with edit" if edited else "Approve"


def _with_votes(words: str, votes: str) -> str:
    return f"{words} ({votes})" if votes else words
