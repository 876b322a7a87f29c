"""The administration of effects, failures and tokens: read, never changed.

A token can be revoked by users who see all teams and may change tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from agents.models.token import TokenState
from checkpoints import actors
from checkpoints.access.permissions import CHANGE_TOKEN, VIEW_EVENT, may_everywhere
from checkpoints.admin.base import (
    ReadOnlyAdmin,
    TakesOrders,
    make_page_link,
    make_since_filter,
    make_value_filter,
    words_of,
)

from . import tokens
from .models import Effect, Failure, Token


@admin.register(Effect)
class EffectAdmin(ReadOnlyAdmin):
    """The effect ledger; results are on the run's page."""

    list_display = ("id", "in_run", "step", "status", "attempts", "irreversible", "intended_at", "settled_at", "page")
    list_filter = ("status", "irreversible", make_since_filter("intended_at"))
    search_fields = ("=key", "=step")
    search_help_text = "An idempotency key, or a step's name"
    readonly_fields = ("page",)
    page = make_page_link("run", "page", "run_id")


@admin.register(Failure)
class FailureAdmin(ReadOnlyAdmin):
    """Failed attempts of steps; tracebacks are on the run's page."""

    list_display = ("id", "in_run", "step", "attempt", "error_words", "validator", "at", "page")
    list_select_related = ("run__plan",)
    list_filter = (make_since_filter("at"),)
    search_fields = ("=step",)
    search_help_text = "A step's name"
    by_program = {"error": "error_words"}
    error_words = words_of("error")
    readonly_fields = ("error_words", "page")
    page = make_page_link("run", "page", "run_id")


class Whose(admin.SimpleListFilter):
    """The filter of tokens by kind: personal, or agents'."""

    title = "owner"
    parameter_name = "whose"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """List the two kinds of token."""
        return [("own", "person"), ("agent", "agent")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Token]) -> QuerySet[Token]:
        """Keep the tokens of the chosen kind."""
        if self.value() == "own":
            return queryset.filter(agent="")
        return queryset.exclude(agent="") if self.value() == "agent" else queryset


@admin.register(Token)
class TokenAdmin(TakesOrders, ReadOnlyAdmin):
    """The tokens of all users. People make theirs on their own page."""

    list_display = ("hint", "name", "user", "agent", "team", "policy", "stands", "expires_at", "last_used_at")
    list_filter = (make_value_filter("state", "state", lambda: TokenState), Whose, make_since_filter("created_at"))
    list_select_related = ("user", "team")
    search_fields = ("=hint", "=agent", "=user__username", "name")
    search_help_text = "The beginning of a token, its name, an agent's name or a username"
    readonly_fields = ("stands",)
    change_form_template = "admin/agents/token/change_form.html"

    @admin.display(description="State")
    def stands(self, token: Any) -> str:
        """Return the label of the token's state."""
        return str(TokenState(token.state).label)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Token]:
        """Return the tokens, each with its state."""
        return Token.objects.with_state().order_by("-pk")

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Return the address that revokes a token, with its view."""
        return {"<int:token>/revocations": self.revoke}

    def may_order(self, request: HttpRequest) -> bool:
        """Tell whether the user sees all teams and may change tokens."""
        return may_everywhere(request.user, VIEW_EVENT, CHANGE_TOKEN)

    def revoke(self, request: HttpRequest, token: int) -> HttpResponse:
        """Revoke the token and return to its page."""
        found = get_object_or_404(Token, pk=token)
        done = tokens.revoke(found, by=actors.of_user(request.user))
        messages.info(request, f"{found} is revoked." if done else f"{found} had already been revoked.")
        return redirect("admin:agents_token_change", found.pk)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Show the token, with the button that revokes it for users who may."""
        found = self.get_object(request, object_id)
        order = found if found is not None and found.revoked_at is None and self.may_order(request) else None
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "revocable": order})
