"""The administration of what agents did outside, and of their failures: read, never changed."""

from __future__ import annotations

from django.contrib import admin

from checkpoints.admin.base import ReadOnlyAdmin, of_run, shown, since

from .models import Effect, Failure


@admin.register(Effect)
class EffectAdmin(ReadOnlyAdmin):
    """The effect ledger; what came back is on the run's page."""

    list_display = ("id", "in_run", "step", "status", "attempts", "irreversible", "intended_at", "settled_at", "page")
    list_filter = ("status", "irreversible", since("intended_at"))
    search_fields = ("=key", "=step")
    search_help_text = "An idempotency key, or a step's name"
    readonly_fields = ("page",)
    in_run = of_run
    page = shown("run", "page", "run_id")


@admin.register(Failure)
class FailureAdmin(ReadOnlyAdmin):
    """Attempts that did not land; tracebacks are on the run's page."""

    list_display = ("id", "in_run", "step", "attempt", "error", "validator", "at", "page")
    list_filter = (since("at"),)
    search_fields = ("=step",)
    search_help_text = "A step's name"
    readonly_fields = ("page",)
    in_run = of_run
    page = shown("run", "page", "run_id")
