"""Lists the first steps of an installation on the inbox, which approvals shows: it knows no tokens of agents."""

from __future__ import annotations

from django import template
from django.template import Context

from agents.queries import first_steps as installation

register = template.Library()


@register.simple_tag(takes_context=True)
def first_steps(context: Context) -> list[installation.FirstStep]:
    """Return the steps for the page's reader; none once all are done."""
    return installation.first_steps(context["user"])
