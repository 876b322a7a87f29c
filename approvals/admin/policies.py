"""Policies: saving makes the next version."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.db import models
from django.http import HttpRequest
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Policy, versions
from approvals.policy import enough_reviewers
from checkpoints import actors
from checkpoints.admin.base import column, listed
from checkpoints.admin.durations import HOW, Duration, spelled
from checkpoints.admin.versions import NewestVersionsFilter, VersionedAdmin, VersionedForm

SHORTEST = timedelta(minutes=1)
PATIENCE = timedelta(minutes=2)  # before the gates of a silent external program may be withdrawn


class PolicyForm(VersionedForm[Policy]):
    """The form of a policy version; each field says what it does."""

    deadline = Duration(
        least=SHORTEST,
        too_short=gettext_lazy("That is less than a minute, too short for anybody to decide."),
        help_text=format_lazy("{} {}", HOW, gettext_lazy("Empty: no deadline.")),
    )
    withdraw_after = Duration(
        least=PATIENCE,
        too_short=gettext_lazy("Programs report once a minute: write 2 min or more."),
        label=gettext_lazy("Withdraw if the external agent is offline for"),
        help_text=gettext_lazy(
            "Applies to external agents that have not announced a pause. For example 10 min. Empty: never."
        ),
    )

    pause = Duration(
        least=SHORTEST,
        too_short=gettext_lazy("That is less than a minute, too short to make a difference."),
        label=gettext_lazy("Pause before a third attempt"),
        help_text=format_lazy(
            "{} {}",
            HOW,
            gettext_lazy(
                "An agent that was rejected twice waits this long after the last rejection before it asks the same "
                "again. What a person sent back may be asked again at once. Empty: no pause."
            ),
        ),
    )

    class Meta:
        model = Policy
        fields = (
            "team",
            "name",
            "groups",
            "quorum",
            "separation",
            "reason_required",
            "step_up",
            "step_up_method",
            "tokens_decide",
            "deadline",
            "on_expiry",
            "withdraw_after",
            "whole_state",
            "registered_only",
            "hourly",
            "pause",
        )
        labels = {
            "groups": gettext_lazy("Decided by"),
            "quorum": gettext_lazy("Approvals needed"),
            "separation": gettext_lazy("Requester cannot approve (four-eyes)"),
            "step_up": gettext_lazy("Require confirmation"),
            "step_up_method": gettext_lazy("Confirmed by"),
            "on_expiry": gettext_lazy("After the deadline"),
            "hourly": gettext_lazy("Gates per hour"),
        }
        help_texts = {
            "name": gettext_lazy(
                "Agents' gates ask for a policy by this name. “default” is for gates that name none. If the team has "
                "a policy of this name, saving makes its next version."
            ),
            "groups": gettext_lazy("The teams whose members may decide. None chosen: the policy's own team."),
            "quorum": gettext_lazy("How many different people must approve the same version of a gate."),
            "separation": gettext_lazy(
                "The person who started a run, or who owns the token that started it or asks, cannot approve its gates."
            ),
            "hourly": gettext_lazy(
                "How many gates one agent may open in the team within an hour. An external agent over the limit is "
                "told when to try again; a run of an agent on this server waits in the queue. Empty: no limit."
            ),
            "step_up": gettext_lazy(
                "Reviewers confirm who they are before they decide: by their password, their passkey, or a code of "
                "their authenticator app. API tokens cannot decide then."
            ),
            "step_up_method": gettext_lazy(
                "With “passkey only” people without a passkey cannot decide until they add one to their account."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Begin a new policy without decisions by token: who wants them says so."""
        super().__init__(*args, **kwargs)
        if not self.instance.pk:
            self.initial["tokens_decide"] = False
        if "step_up_method" in self.fields:  # not where an older version is only read
            self.fields["step_up_method"].required = False

    def clean_step_up_method(self) -> str:
        """Take what is chosen, or any method."""
        return self.cleaned_data["step_up_method"] or str(Policy.StepUpMethod.ANY)

    def clean(self) -> dict[str, Any]:
        """Refuse an edit of an outdated version, and a quorum that the reviewers are too few for."""
        said = super().clean()
        team = said.get("team") or (self.instance.team if self.instance.pk else None)
        if team and said.get("quorum") and "groups" in said:
            short = enough_reviewers.too_few(said["quorum"], list(said["groups"]) or [team])
            if short:
                self.add_error("quorum", short)
        return said


@admin.register(Policy)
class PolicyAdmin(VersionedAdmin[Policy]):
    """Saving makes the next version; gates keep the version they were opened under, and older ones are only read."""

    list_display = (
        "name",
        "version",
        "team",
        "needed",
        "reviewing",
        "may_decide",
        "four_eyes",
        "confirmed",
        "by_token",
        "within",
        "then",
        "state_edits",
        "gates",
    )
    list_filter = (NewestVersionsFilter, "team", "name")
    list_select_related = ("team",)
    search_fields = ("name", "team__name")
    ordering = ("team__name", "name", "-version")
    filter_horizontal = ("groups",)
    COUNTS = gettext_lazy("New gates use {}.")
    form = PolicyForm
    fields = PolicyForm.Meta.fields
    needed = column("quorum", gettext_lazy("Approvals"))
    four_eyes = column("separation", gettext_lazy("Four-eyes"), boolean=True)
    confirmed = column("step_up", gettext_lazy("Confirmed"), boolean=True)
    by_token = column("tokens_decide", gettext_lazy("Tokens"), boolean=True)
    state_edits = column("whole_state", gettext_lazy("Whole state"), boolean=True)
    gates = listed("approvals_gate", gettext_lazy("gates"), policy__id__exact="pk")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Policy]:
        """Prefetch the teams that decide."""
        return super().get_queryset(request).prefetch_related("reviewing")

    @admin.display(description=gettext_lazy("Decided by"))
    def reviewing(self, policy: Policy) -> str:
        """Return the teams whose members may decide."""
        return ", ".join(group.name for group in policy.reviewers)

    @admin.display(description=gettext_lazy("May decide now"))
    def may_decide(self, policy: Policy) -> str:
        """Say how many people may decide, and whether they are too few for the quorum."""
        people: int = getattr(policy, "people", 0)
        return _("%(people)s, too few") % {"people": people} if people < policy.quorum else str(people)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Count for each policy of the page the people who may decide."""
        page: Any = super().get_changelist_instance(request)
        policies = list(page.result_list)
        for policy, people in zip(
            policies, enough_reviewers.people(*(each.reviewers for each in policies)), strict=True
        ):
            policy.people = len(people)
        page.result_list = policies
        return page

    @admin.display(description=gettext_lazy("Deadline"))
    def within(self, policy: Policy) -> str:
        """Say how long its gates wait for an answer."""
        return "none" if policy.deadline is None else spelled(policy.deadline)

    @admin.display(description=gettext_lazy("Then"))
    def then(self, policy: Policy) -> str:
        """Return what happens once the deadline has passed, in one word."""
        return "-" if policy.deadline is None else str(policy.on_expiry)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Call a group a team, as everywhere."""
        if db_field.name == "groups":
            kwargs["widget"] = FilteredSelectMultiple("teams", is_stacked=False)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Policy, form: forms.ModelForm[Policy], change: bool) -> None:
        """Write what was entered as the next version, with its event."""
        groups = list(form.cleaned_data["groups"])
        versions.write(obj, by=actors.of_user(request.user), groups=groups)
        if tight := enough_reviewers.tight(obj, groups or [obj.team]):
            messages.warning(request, tight)
