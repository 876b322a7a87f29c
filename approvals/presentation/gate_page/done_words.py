"""Says what was done before that is like what a gate asks for: "Paid €89.00 at 23:23 by R-23 (gate 22)"."""

from __future__ import annotations

from approvals.consequences.done_before import DoneBefore
from approvals.consequences.verbs import DO, phrase
from approvals.presentation.decision_form import send_button
from approvals.presentation.drawing.repeats import moment
from approvals.presentation.gate_facts.provenance import in_quotes


def say_done(each: DoneBefore, resource: str, *, outside: bool) -> str:
    """Say what was done, when and by which run. Titles and `resource` are an agent's own: data, never markup.

    `outside`: an external program named the resource.
    """
    action = each.action
    theirs = each.external and (action is None or action.registered is None)
    titles = [each.effect, *([action.title] if action and action.title else [])]
    verb, what = (DO, in_quotes(each.effect, outside=True)) if theirs else phrase(titles)
    if verb is DO:
        words = f"{what} was done" if each.done else f"{what} may have been done"
    else:
        amounts = send_button.amounts_of([action]) if action else []
        past = " ".join([verb.past, *(amounts or [what])])
        words = f"{past[:1].upper()}{past[1:]}" if each.done else f"May have {past}"
    about = f"for {in_quotes(resource, outside=outside)}" if resource and not each.same else ""
    where = f"by R-{each.run} (gate {each.gate})" if each.gate else "by another run"
    return " ".join(filter(None, [words, about, moment(each.at), where]))
