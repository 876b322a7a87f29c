"""Chat channels of teams: added here, tried out and removed by buttons.

Whoever manages webhooks in a team sees and controls that team's; for anybody else they do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from approvals.channels import browsers, team_channels
from approvals.models import ChannelAddress
from approvals.notifications import log
from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.admin.base import ModelAdmin, ModelForm, NothingByHand, TakesOrders

from .webhooks import OfOwnTeams, manages_webhooks, teams_of

Order = Callable[[HttpRequest, ChannelAddress, Actor], None]


class ChannelForm(ModelForm[ChannelAddress]):
    """The form of a new channel."""

    channel = forms.ChoiceField(label="Service", choices=tuple(team_channels.SERVICES.items()))
    address = forms.CharField(
        label="Address",
        max_length=2000,
        help_text=(
            "Slack: the address of an incoming webhook, or the id of a channel that the app is in (C024BE91L). "
            "Teams: the address of a workflow “When a Teams webhook request is received”, or of anything else that "
            "takes Adaptive Cards. It is not shown again."
        ),
        widget=forms.TextInput(attrs={"size": 60, "autocomplete": "off"}),
    )

    class Meta:
        model = ChannelAddress
        fields = ("team", "channel", "address", "label")
        labels = {"label": "Name"}
        help_texts = {"label": "What people call the channel, such as #approvals."}

    def clean(self) -> dict[str, Any]:
        """Refuse an address to which nothing can be sent, and one channel more than a team may have."""
        values: dict[str, Any] = super().clean() or {}
        if "address" in values and (why := team_channels.fault(values.get("channel", ""), values["address"])):
            self.add_error("address", why)
        if values.get("team") and (why := team_channels.full(values["team"])):
            self.add_error("team", why)
        return values

    def _post_clean(self) -> None:
        """Check nothing of the row: it is made by `add`, from the address."""


@admin.register(ChannelAddress)
class ChatChannelAdmin(OfOwnTeams, NothingByHand, TakesOrders, ModelAdmin[ChannelAddress]):
    """Chat channels in which all gates of a team are told. One is added and removed, never changed."""

    form = ChannelForm
    list_display = ("label", "service", "team", "state", "created_at")
    list_select_related = ("team",)
    search_fields = ("label",)
    ordering = ("team__name", "label", "pk")
    change_form_template = "admin/approvals/channeladdress/change_form.html"

    @admin.display(description="Service")
    def service(self, address: ChannelAddress) -> str:
        """Return the service's name."""
        return team_channels.SERVICES.get(address.channel, address.channel)

    @admin.display(description="Status")
    def state(self, address: ChannelAddress) -> str:
        """Return whether it takes messages, with the reason where it does not."""
        return f"Gone: {log.words(address.gone_word)}" if address.gone_at else "In use"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ChannelAddress]:
        """Return the channels of one's own teams that nobody removed."""
        found: models.QuerySet[ChannelAddress] = super().get_queryset(request)
        return found.filter(team__in=teams_of(request)).exclude(gone_word=browsers.REMOVED)

    def get_fields(self, request: HttpRequest, obj: ChannelAddress | None = None) -> tuple[str, ...]:
        """Return the fields of a new channel, or what is shown of one: never its address."""
        if obj is None:
            return ("team", "channel", "address", "label")
        return ("label", "service", "team", "state", "created_at")

    def get_readonly_fields(self, request: HttpRequest, obj: ChannelAddress | None = None) -> tuple[str, ...]:
        """Return all fields of an existing channel."""
        return () if obj is None else self.get_fields(request, obj)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer only one's own teams, and ask for one."""
        if db_field.name == "team":
            kwargs |= {"queryset": teams_of(request).order_by("name"), "required": True}
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Admit whoever manages webhooks in any team; the form offers these teams."""
        return manages_webhooks(request)

    def save_model(self, request: HttpRequest, obj: ChannelAddress, form: Any, change: bool) -> None:
        """Add the channel, with its event."""
        result, by = form.cleaned_data, actors.of_user(request.user)
        made = team_channels.add(result["team"], result["channel"], result["address"], label=result["label"], by=by)
        obj.__dict__.update({key: value for key, value in made.__dict__.items() if key != "_state"})
        obj._state.adding = False

    def response_add(
        self, request: HttpRequest, obj: ChannelAddress, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Lead to the channel's page, where it can be tried out."""
        messages.success(request, f"{obj.label} is added. Send a test message to see that it arrives.")
        return redirect("admin:approvals_channeladdress_change", obj.pk)

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Return the addresses that the buttons post to."""
        orders = {"tests": _test, "removals": _remove}
        return {f"<int:channel>/{name}": partial(self.order, order) for name, order in orders.items()}

    def order(self, order: Order, request: HttpRequest, channel: int) -> HttpResponse:
        """Carry out an order, and say what came of it."""
        found = get_object_or_404(self.get_queryset(request), pk=channel)
        order(request, found, actors.of_user(request.user))
        if order is _remove:
            return redirect("admin:approvals_channeladdress_changelist")
        return redirect("admin:approvals_channeladdress_change", found.pk)


def _test(request: HttpRequest, address: ChannelAddress, by: Actor) -> None:
    tried = team_channels.test(address, by=by)
    if tried.arrived:
        messages.success(request, f"The test message arrived in {address.label}.")
    else:
        messages.warning(request, f"The test message did not arrive in {address.label}: {tried.why}.")


def _remove(request: HttpRequest, address: ChannelAddress, by: Actor) -> None:
    team_channels.remove(address, by=by)
    messages.info(request, f"{address.label} is removed.")
