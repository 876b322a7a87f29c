"""Webhooks: made here, and controlled by buttons.

Whoever manages webhooks in a team sees and controls that team's; for anybody else they do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse

from approvals.models import Webhook
from approvals.outbound import targets
from approvals.webhooks import outbox
from checkpoints import actors
from checkpoints.access.permissions import MANAGE_WEBHOOKS, is_superuser, teams_where
from checkpoints.actors import Actor
from checkpoints.admin.base import (
    Mixed,
    ModelAdmin,
    ModelForm,
    NothingByHand,
    TakesOrders,
    make_column,
    make_list_link,
    make_value_filter,
)

Order = Callable[[Any, Actor], tuple[int, str]]  # what came of it: a message's level and its words


def teams_of(request: HttpRequest) -> models.QuerySet[Group]:
    """Return the teams whose webhooks this person manages; all teams for a superuser."""
    user = request.user
    return Group.objects.all() if is_superuser(user) else teams_where(user, MANAGE_WEBHOOKS)


def manages_webhooks(request: HttpRequest) -> bool:
    """Tell whether this person manages any webhooks. Cached: each page of the administration asks several times."""
    known = getattr(request, "manages_webhooks", None)
    if known is None:
        known = is_superuser(request.user) or teams_of(request).exists()
        request.manages_webhooks = known  # type: ignore[attr-defined]
    return known


class OfOwnTeams(Mixed):
    """Pages with rows of the teams whose webhooks somebody manages; for others the rows do not exist."""

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return manages_webhooks(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return manages_webhooks(request)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Answer 404 for a row that does not exist or is another team's."""
        found = self.get_object(request, object_id)
        if found is None:
            raise Http404
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "row": found})


class MadeHere(OfOwnTeams, NothingByHand, TakesOrders):
    """Rows that a form makes, of the fields NEW, and only orders change, so that logs stay true; SHOWN are read."""

    NEW: tuple[str, ...]
    SHOWN: tuple[str, ...]
    ORDERS: Mapping[str, Order]
    list_select_related = ("team",)

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> tuple[str, ...]:
        return self.NEW if obj is None else self.SHOWN

    def get_readonly_fields(self, request: HttpRequest, obj: models.Model | None = None) -> tuple[str, ...]:
        return () if obj is None else self.SHOWN

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer only one's own teams, and ask for one."""
        if db_field.name == "team":
            kwargs |= {"queryset": teams_of(request).order_by("name"), "required": True}
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Admit whoever manages webhooks in any team; the form offers these teams."""
        return manages_webhooks(request)

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        return {f"<int:number>/{name}": partial(self.order, order) for name, order in self.ORDERS.items()}

    def order(self, order: Order, request: HttpRequest, number: int) -> HttpResponse:
        """Carry out an order, and say what came of it."""
        row = get_object_or_404(self.get_queryset(request), pk=number)
        messages.add_message(request, *order(row, actors.of_user(request.user)))
        if not self.get_queryset(request).filter(pk=row.pk).exists():  # it was removed
            return redirect(f"admin:approvals_{self.opts.model_name}_changelist")
        return redirect(f"admin:approvals_{self.opts.model_name}_change", row.pk)

    def show_as(self, obj: models.Model, saved: models.Model) -> None:
        """Let the row of the form be the one that was made with its event."""
        obj.__dict__.update({key: value for key, value in saved.__dict__.items() if key != "_state"})
        obj._state.adding = False


class WebhookForm(ModelForm[Webhook]):
    """The form of a new webhook."""

    class Meta:
        model = Webhook
        fields = ("team", "agent", "url", "purpose")
        labels = {"url": "Address", "agent": "Agent"}
        help_texts = {
            "agent": "An agent's name, to report only its gates. Empty: all gates of the team.",
            "url": "Where messages are sent, by POST: https://hooks.example.com/holdpoint.",
            "purpose": "What it is for, in your words.",
        }
        widgets = {"url": forms.TextInput(attrs={"size": 60, "type": "url", "autocomplete": "off"})}

    def clean_url(self) -> str:
        """Refuse an address to which nothing may be sent."""
        url = str(self.cleaned_data["url"])
        if fault := targets.fault(url):
            raise forms.ValidationError(fault)
        return url

    def clean_team(self) -> Group:
        """Refuse one webhook more than a team may have."""
        team: Group = self.cleaned_data["team"]
        if full := Webhook.objects.full(team):
            raise forms.ValidationError(full)
        return team


def _disable(webhook: Webhook, by: Actor) -> tuple[int, str]:
    done = webhook.disable(Webhook.Reason.BY_HAND, by=by)
    return messages.INFO, "Disabled. Queued messages are kept." if done else "It was not enabled."


def _enable(webhook: Webhook, by: Actor) -> tuple[int, str]:
    done = webhook.enable(by=by)
    return messages.INFO, "Enabled. Queued messages are sent now." if done else "It was not disabled."


def _remove(webhook: Webhook, by: Actor) -> tuple[int, str]:
    done = webhook.remove(by=by)
    return messages.INFO, f"The webhook to {webhook.host} is removed." if done else "It was removed before."


def _test(webhook: Webhook, by: Actor) -> tuple[int, str]:
    sent = outbox.test(webhook, by=by)
    words = f"Test message {sent.name} is on its way: see the delivery log." if sent else "It is not enabled."
    return messages.INFO, words


@admin.register(Webhook)
class WebhookAdmin(MadeHere, ModelAdmin[Webhook]):
    """External addresses that get messages about a team's gates."""

    form = WebhookForm
    ORDERS = {"disablings": _disable, "enablings": _enable, "removals": _remove, "tests": _test}
    NEW = ("team", "agent", "url", "purpose")
    SHOWN = (
        "url", "team", "about", "purpose", "state", "failing_since", "overlap", "made_by", "created_at", "deliveries",
    )  # fmt: skip
    list_display = ("host_of", "purpose", "team", "about", "in_short", "failing_since", "deliveries")
    # Removed webhooks are not listed.
    list_filter = (make_value_filter("status", "status", lambda: (Webhook.Status.ENABLED, Webhook.Status.DISABLED)),)
    search_fields = ("url", "purpose")
    ordering = ("team__name", "pk")
    change_form_template = "admin/approvals/webhook/change_form.html"
    host_of = make_column("host", "Host")  # without what may be secret in the rest of the address
    deliveries = make_list_link("approvals_message", "delivery log", webhook="pk")

    @admin.display(description="Agent")
    def about(self, webhook: Webhook) -> str:
        """Return the agent whose gates it hears of, "all" for every agent."""
        return webhook.agent or "all"

    @admin.display(description="Status")
    def in_short(self, webhook: Webhook) -> str:
        """Return its status, with the reason in a word where it is disabled."""
        return f"{webhook.status}, {webhook.reason.replace('_', ' ')}" if webhook.reason else webhook.status

    @admin.display(description="Status")
    def state(self, webhook: Webhook) -> str:
        """Return its status, with the reason where it is disabled."""
        why = f": {webhook.get_reason_display()}" if webhook.reason else ""
        return f"{webhook.get_status_display()}{why}"

    @admin.display(description="Made by")
    def made_by(self, webhook: Webhook) -> str:
        """Return who made it."""
        return webhook.by_name or webhook.by

    @admin.display(description="Also signed with the previous secret, until")
    def overlap(self, webhook: Webhook) -> Any:
        """Return until when the former secret signs too; "-" where none does."""
        return webhook.former_until or "-"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Webhook]:
        """Return the webhooks of one's own teams that are not removed."""
        found: models.QuerySet[Webhook] = super().get_queryset(request)
        return found.filter(team__in=teams_of(request)).exclude(status=Webhook.Status.REMOVED)

    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        """Make the webhook, with its event."""
        values = {name: form.cleaned_data[name] for name in self.NEW}
        made, request.webhook_secret = Webhook.objects.make(**values, by=actors.of_user(request.user))  # type: ignore[attr-defined]
        self.show_as(obj, made)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        """Show one button only, since the next page shows the secret."""
        alone = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, {**(extra_context or {}), **alone})

    def response_add(self, request: HttpRequest, obj: Webhook, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret, this once."""
        return self._secret(request, obj, request.webhook_secret)  # type: ignore[attr-defined]

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        return {**super().orders(), "<int:webhook>/rotations": self.rotate}

    def rotate(self, request: HttpRequest, webhook: int) -> HttpResponse:
        """Replace the webhook's secret, and show the new one."""
        found = get_object_or_404(self.get_queryset(request), pk=webhook)
        if not (secret := found.rotate(by=actors.of_user(request.user))):
            raise Http404("The webhook was removed.")
        return self._secret(request, found, secret)

    def _secret(self, request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request), "opts": self.opts, "title": "The webhook's secret",
            "webhook": webhook, "secret": secret,
        }  # fmt: skip
        return TemplateResponse(request, "admin/approvals/webhook/secret.html", context)
