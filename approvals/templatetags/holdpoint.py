"""Template tags that every page shares."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from django import template
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from approvals import english
from approvals.forms import names, texts
from approvals.gates.beside import OpenBeside
from approvals.presentation import topbar
from approvals.presentation.drawing import times
from approvals.presentation.gate_facts.provenance import Provenance, in_quotes
from approvals.presentation.text import amounts, files, invisible, line_diff, lookalikes, untrusted
from approvals.presentation.text import state_tree as tree
from checkpoints.models import Plan, Run
from checkpoints.runs.plans import PlanSpec, spec_of

register = template.Library()
register.simple_tag(untrusted.icon)
register.simple_tag(topbar.address, name="url")
register.simple_tag(line_diff.render, name="word_changes")
register.simple_tag(files.address, name="artifacts_of")
register.simple_tag(tree.render, name="state_tree")
register.filter("file_words", files.words)
register.simple_tag(Provenance.risk_mark, name="risk_mark")  # who set a card's risk: `{% risk_mark provenance card %}`
register.simple_tag(Provenance.reasons_mark, name="reasons_mark")  # who gave the reasons for it
register.filter("lasting", times.lasting)
register.simple_tag(times.element, name="when")
register.simple_tag(lambda: settings.HOLDPOINT_UPLOAD_LIMIT, name="upload_limit")  # of a file in an edit, in bytes
register.filter("person", untrusted.person)
register.filter("untrusted", untrusted.render)  # over several lines, with badges and measured blanks
register.filter("untrusted_line", untrusted.line)
register.filter("untrusted_exact", untrusted.exact)
register.filter("untrusted_plain", untrusted.plain)
register.filter("counted", lambda count, noun: english.count_of(count, *noun.split(",")))  # "run", or "entry,entries"
# Possessive, so that it never backtracks: a text of backticks would take time by the square of its length.
INDENTED = 60  # blanks at the beginning of a line of code that are drawn
CODE = re.compile(r"(?<!`)(`++)([^`]++)\1")


@register.simple_tag(takes_context=True)
def frame(context: Context) -> dict[str, Any]:
    """Return the frame of a page: `{% frame as topbar %}`. A 404 page has no request."""
    request = context.get("request")
    return topbar.frame(request) if request is not None else {}


@register.filter
def untrusted_code(value: str) -> SafeString:
    """Render one line of untrusted code, with its indentation as it is."""
    inside = value.lstrip(" \t")
    indentation = value[: len(value) - len(inside)]
    if len(indentation) > INDENTED:
        return untrusted.render(value, value=True)
    return format_html("{}{}", indentation, untrusted.render(inside, value=True))


@register.simple_tag
def words(
    value: object, whole: str = "", at: str = "", action: str = "", runs: bool = False, part: bool = False
) -> SafeString:
    """Render untrusted words, with a link to all of them: `{% words text whole=address at="/proposal/reply" %}`.

    `action`: the id of the action in whose arguments `at` is. `runs`: they are a value that runs as it is, so that
    odd spaces, and blanks at its ends, are named; `part`: they are a part of one.
    """
    within = f"action={quote(action)}&" if action else ""
    return untrusted.render(value, whole=f"{whole}?{within}at={quote(at)}" if whole else "", value=runs, part=part)


@register.filter
def program_words(value: object, outside: bool) -> SafeString:
    """Render words on one line, quoted where an external program supplied them: `{{ title|program_words:outside }}`."""
    shown = untrusted.line(value)
    return format_html('<q class="theirs">{}</q>', shown) if outside and value else shown


@register.filter
def program_plain(value: object, outside: bool) -> str:
    """Write such words for a title or an attribute."""
    return in_quotes(untrusted.plain(value), outside=outside)


@register.simple_tag
def agent_words(value: object, provenance: Provenance | OpenBeside) -> SafeString:
    """Render words of the program that asks, as `program_words` does."""
    return program_words(value, provenance.outside)


@register.filter
def run_title(run: Run) -> SafeString:
    """Render a run's title, as `program_words` does. Needs the run's plan."""
    return program_words(run.title, run.plan.external)


@register.filter
def agent_title(words: str, run: Run) -> SafeString:
    """Render a title or reason by the run's agent, as `program_words` does. Needs the run's plan."""
    return program_words(words, run.plan.external)


@register.filter
def docstring(value: object, outside: bool = False) -> SafeString:
    """Render an agent's docstring as `program_words` does, without the backticks that mark code."""
    return program_words(CODE.sub(r"\2", str(value)), outside)


@register.filter
def titled(step: str, plan: PlanSpec | Plan) -> str:
    """Return the title of a step: `{{ name|titled:page.plan }}`, `{{ run.next_step|titled:run.plan }}`."""
    return (spec_of(plan) if isinstance(plan, Plan) else plan).title_of(step)


@register.filter("untrusted_value")
@register.simple_tag
def value_of(value: Any, pointer: str = "", whole: str = "") -> SafeString:
    """Render any JSON value as it will run: strings as they are, the rest as JSON.

    One too long for the page is linked at `whole`, with ?at=<pointer>.
    """
    if value == "":
        return format_html('<span class="hint">{}</span>', "(empty)")
    address = f"{whole}?at={quote(pointer)}" if whole else ""
    if files.is_plain(value):
        return files.render(value)
    if isinstance(value, (dict, list)) and value:
        text = json.dumps(value, ensure_ascii=False, indent=2)
        return untrusted.folded(text, address) if address else untrusted.render(text, value=True)
    return tree.scalar(value, address)


@register.simple_tag
def pinned(value: Any, gate: int = 0, action: str = "", place: str = "") -> SafeString:
    """Render a pinned value for people: a list as its values, an object by its names; whole while there is room.

    Links to the whole value where it is the one that the gate asks for now.
    """
    address = f"{reverse('gate_value', args=[gate])}?{urlencode({'action': action, 'at': place})}" if gate else ""
    return tree.spell_out(value, whole=address)


@register.simple_tag
def pinned_amount(value: Any, gate: int = 0, action: str = "", place: str = "") -> SafeString:
    """Render a pinned amount, in figures that are easy to read."""
    if isinstance(value, str) and len(value) <= lookalikes.LONGEST and lookalikes.in_exact(value):
        return untrusted.exact(value)
    return amounts.grouped(value) or pinned(value, gate, action, place)


@register.filter
def untrusted_brief(value: Any) -> SafeString:
    """Render the beginning of any JSON value on one line; the whole value is elsewhere on the page."""
    if files.is_plain(value) or not isinstance(value, (str, dict, list)):
        return value_of(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return untrusted.exact(text) if lookalikes.is_exact(text) else untrusted.brief(text)


@register.filter
def untrusted_whole(value: Any) -> SafeString:
    """Render any JSON value, never clamped."""
    if files.is_plain(value):
        return files.render(value)
    if isinstance(value, (dict, list)) and value:
        return untrusted.render(json.dumps(value, ensure_ascii=False, indent=2), clamp=False, value=True)
    return tree.scalar(value, clamp=False)


@register.simple_tag
def file_line(value: Any, artifacts: str = "") -> SafeString:
    """Render a reference to a file; with a link to it where `artifacts` is the address of the files."""
    return files.render(value, artifacts=artifacts, folded=True) if files.is_plain(value) else value_of(value)


@register.filter
def is_rewording(row: Mapping[str, Any]) -> bool:
    """Tell whether a row of a diff replaces a text by another, so long that they are better compared by words."""
    both = [text for text in (row.get("before"), row.get("after")) if isinstance(text, str)]
    return row["kind"] == "changed" and len(both) == 2 and any(len(text) > texts.LONG or "\n" in text for text in both)


@register.filter
def hides(value: object) -> bool:
    """Tell whether a text hides something from a reader, so that it is shown once more, with badges.

    So do blanks at its ends, but for one line break that ends its last line.
    """
    text = str(value)
    return any(invisible.badge_count(text, value=True)) or text.removesuffix("\n") != text.strip()


@register.filter
def unmarked(name: str) -> str:
    """Return the name of an input without its mark, as a button's change names it."""
    prefix, _, path = names.split(name)
    return prefix + path


@register.filter
def pointer_label(pointer: str) -> SafeString:
    """Write a JSON Pointer for people."""
    return untrusted.line(untrusted.place(pointer))


@register.filter
def persons(users: Iterable[AbstractBaseUser | str]) -> str:
    """List the names of several people: `Ann Okafor, Bob Lindqvist`."""
    return ", ".join(map(untrusted.person, users))


@register.filter
def initials(user: AbstractBaseUser | AnonymousUser | str) -> str:
    """Return two letters for an avatar."""
    words = untrusted.person(user).split()
    return "".join(word[0] for word in (words[:1] + words[1:][-1:])).upper()
