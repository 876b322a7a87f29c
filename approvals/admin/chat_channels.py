"""Chat channels of teams: added here, tried out and removed by buttons.

Whoever manages webhooks in a team sees and controls that team's; for anybody else they do not exist.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import lazy

from approvals.channels import browsers, team_channels
from approvals.models import ChannelAddress
from approvals.notifications import channel, log
from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.admin.base import ModelAdmin, ModelForm

from .webhooks import MadeHere, teams_of


def _address_help() -> str:
    takes = [f"{known.label}: {known.takes}." for known in team_channels.services()]
    return " ".join([*takes, "It is not shown again."])


class ChannelForm(ModelForm[ChannelAddress]):
    """The form of a new channel."""

    channel = forms.ChoiceField(
        label="Service", choices=lambda: [(known.name, known.label) for known in team_channels.services()]
    )
    address = forms.CharField(
        label="Address",
        max_length=2000,
        help_text=lazy(_address_help, str)(),
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


def _test(address: ChannelAddress, by: Actor) -> tuple[int, str]:
    tried = team_channels.test(address, by=by)
    if tried.arrived:
        return messages.SUCCESS, f"The test message arrived in {address.label}."
    return messages.WARNING, f"The test message did not arrive in {address.label}: {tried.why}."


def _remove(address: ChannelAddress, by: Actor) -> tuple[int, str]:
    team_channels.remove(address, by=by)
    return messages.INFO, f"{address.label} is removed."


@admin.register(ChannelAddress)
class ChatChannelAdmin(MadeHere, ModelAdmin[ChannelAddress]):
    """Chat channels in which all gates of a team are told. One is added and removed, never changed."""

    form = ChannelForm
    ORDERS = {"tests": _test, "removals": _remove}
    NEW = ("team", "channel", "address", "label")
    SHOWN = list_display = ("label", "service", "team", "state", "created_at")  # never its address
    search_fields = ("label",)
    ordering = ("team__name", "label", "pk")
    change_form_template = "admin/approvals/channeladdress/change_form.html"

    @admin.display(description="Service")
    def service(self, address: ChannelAddress) -> str:
        """Return the service's name."""
        known = channel.registered(address.channel)
        return known.label if known else address.channel

    @admin.display(description="Status")
    def state(self, address: ChannelAddress) -> str:
        """Return whether it takes messages, with the reason where it does not."""
        return f"Gone: {log.words(address.gone_word)}" if address.gone_at else "In use"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ChannelAddress]:
        """Return the channels of one's own teams that nobody removed."""
        found: models.QuerySet[ChannelAddress] = super().get_queryset(request)
        return found.filter(team__in=teams_of(request)).exclude(gone_word=browsers.REMOVED)

    def save_model(self, request: HttpRequest, obj: ChannelAddress, form: Any, change: bool) -> None:
        """Add the channel, with its event."""
        result, by = form.cleaned_data, actors.of_user(request.user)
        made = team_channels.add(result["team"], result["channel"], result["address"], label=result["label"], by=by)
        self.show_as(obj, made)

    def response_add(
        self, request: HttpRequest, obj: ChannelAddress, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Lead to the channel's page, where it can be tried out."""
        messages.success(request, f"{obj.label} is added. Send a test message to see that it arrives.")
        return redirect("admin:approvals_channeladdress_change", obj.pk)
