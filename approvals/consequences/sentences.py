"""Writes sentences about effects that would be repeated: "An e-mail was already sent at 16:18". Pure."""

from __future__ import annotations

from django.utils.translation import gettext as _

from approvals.impact.result import Repeat

from .verbs import phrase


def told(repeat: Repeat, *, at: str, here: int, doing: str = "Approving") -> str:
    """Write two sentences: what was done (see `done`), and that it is done again. `doing` is the second's subject."""
    verb = phrase(repeat.titles)[0]
    if not repeat.done:
        said = _("%(doing)s could %(do)s it twice.")
    elif repeat.certain:
        said = _("%(doing)s %(does)s it again.")
    else:
        said = _("%(doing)s may %(do)s it again.")
    return f"{done(repeat, at=at, here=here)}. {said % {'doing': doing, 'do': verb.base, 'does': verb.third}}"


def done(repeat: Repeat, *, at: str, here: int) -> str:
    """Say what was done, without a full stop. `at`: the time in words; `here`: the run that is decided about."""
    verb, what = phrase(repeat.titles)
    where = " ".join(filter(None, [at, _where(repeat, here)]))
    if repeat.done:
        said = _("%(what)s was already %(done)s %(where)s")
    else:
        said = _("Nobody knows whether %(what)s was already %(done)s %(where)s")
    said = (said % {"what": what, "done": verb.past, "where": where}).rstrip()
    return f"{said[:1].upper()}{said[1:]}"


def again(repeat: Repeat) -> str:
    """Word the box that confirms a repeat: `Send it again`."""
    return _("%(do)s it again") % {"do": phrase(repeat.titles)[0].base.capitalize()}


def _where(repeat: Repeat, here: int) -> str:
    run = f"R-{repeat.run}" if repeat.run != here else ""
    place = _("checkpoint %(seq)s") % {"seq": repeat.checkpoint} if repeat.checkpoint else ""
    found = ", ".join(filter(None, [run, place]))
    return f"({found})" if found else ""
