"""The page that shows any two checkpoints of a lineage side by side."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.queries.access import private, run_or_404
from agents.queries.comparison import checkpoint_named, comparison_context


@require_safe
@private
def page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Compare two checkpoints, `?a=` and `?b=`: each by its number in this run, or as run.number."""
    run = run_or_404(request, run_id)
    asked = {letter: request.GET.get(letter, "").strip() for letter in "ab"}
    context: dict[str, Any] = {"run": run, "asked": asked}
    if not all(asked.values()):
        return render(request, "runs/comparison/page.html", context)
    try:
        context |= comparison_context(*(checkpoint_named(request, run, text) for text in asked.values()))
    except Http404:
        return render(request, "runs/comparison/page.html", context | {"missing": True}, status=404)
    return render(request, "runs/comparison/page.html", context)
