"""Holds: legal ones are set and freed here; technical ones, which Holdpoint makes, have a read-only list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from checkpoints import actors
from checkpoints.access.permissions import SET_LEGAL_HOLD, VIEW_EVENT, may_everywhere
from checkpoints.errors import CheckpointError, NoSuchCheckpoint
from checkpoints.models import Checkpoint, Hold, Run, TechnicalHold
from checkpoints.runs import holds

from .base import (
    ModelAdmin,
    ModelForm,
    NothingByHand,
    OfAllTeams,
    ReadOnlyAdmin,
    TakesOrders,
    make_value_filter,
    words_of,
)

# The names of this list and its pages; set here and not in Meta, so that they need no migration.
Hold._meta.verbose_name, Hold._meta.verbose_name_plural = "legal hold", "legal holds"


class LegalHoldForm(ModelForm[Hold]):
    """A legal hold on a run, or on one of its checkpoints."""

    run_number = forms.IntegerField(label="Run", min_value=1, help_text="The run's number: 7 for R-7.")
    seq = forms.IntegerField(
        label="Checkpoint",
        min_value=1,
        required=False,
        help_text="The checkpoint's number. Leave empty to hold the whole run.",
    )
    reason = forms.CharField(max_length=holds.LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 3}))

    class Meta:
        model = Hold
        fields = ("reason",)

    def clean(self) -> dict[str, Any]:
        """Take the run's lock, so that nothing is pruned between this check and the hold."""
        values: dict[str, Any] = super().clean() or {}
        run = Run.objects.filter(pk=int(values.get("run_number") or 0)).first()
        if run is None:
            if "run_number" in values:
                self.add_error("run_number", "There is no such run.")
            return values
        try:
            if values.get("seq"):
                holds.locked(run, values["seq"])
        except NoSuchCheckpoint:
            self.add_error("seq", f"{run} has no checkpoint {values['seq']}.")
        except CheckpointError as gone:
            self.add_error("seq", str(gone))
        return values | {"run": run}


TECHNICAL = [item for item in Hold.Kind if item != Hold.Kind.LEGAL]  # legal holds have a list of their own


class HoldStateFilter(admin.SimpleListFilter):
    """Filters holds into those in force and those freed."""

    title = "state"
    parameter_name = "freed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """List the two choices."""
        return [("no", "still held"), ("yes", "freed")]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Hold]) -> models.QuerySet[Hold]:
        """Return the holds of the choice."""
        wanted = {"no": True, "yes": False}.get(self.value() or "")
        return queryset if wanted is None else queryset.filter(freed_at__isnull=wanted)


class Holds(OfAllTeams, NothingByHand, ModelAdmin[Hold]):
    """A list of holds: what each one protects from retention, and why."""

    search_fields = ("reason", "=run__id")
    search_help_text = "Words of a reason, or a run's number"
    list_select_related = ("run__plan",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Hold]:
        """Annotate each hold with its checkpoint's number, step, and the name that a person gave it."""
        held = Checkpoint.objects.filter(pk=models.OuterRef("checkpoint"))
        name = Hold.objects.standing().filter(
            run=models.OuterRef("run"), checkpoint=models.OuterRef("checkpoint"), kind=Hold.Kind.NAME
        )
        found: models.QuerySet[Hold] = super().get_queryset(request)
        return found.annotate(
            seq=models.Subquery(held.values("seq")),
            step=models.Subquery(held.values("step")),
            named=models.Subquery(name.values("reason")[:1]),
        )

    @admin.display(description="Run", ordering="run")
    def of_run(self, hold: Hold) -> SafeString:
        """Show the run by its number and title: quoted if an external agent gave it."""
        title = words_of("title")(self, hold.run)
        return format_html('<a href="{}">{}</a> {}', reverse("run", args=[hold.run_id]), hold.run, title)

    @admin.display(description="Holds")
    def about(self, hold: Hold) -> str:
        """Name the checkpoint by its number, step and name, or the whole run."""
        if hold.checkpoint is None:
            return "the whole run"
        seq, step, name = (getattr(hold, column, None) for column in ("seq", "step", "named"))
        if not seq:
            return "a checkpoint that was deleted"
        called = f" “{name}”" if name and hold.kind != Hold.Kind.NAME else ""
        return f"checkpoint {seq}{called}, after {step}" if step else f"checkpoint {seq}{called}"

    @admin.display(description="By")
    def made_by(self, hold: Hold) -> str:
        """Name the person or program that made the hold."""
        return _name(hold, hold.by)

    @admin.display(description="Freed by")
    def let_go_by(self, hold: Hold) -> str:
        """Name the person or program that freed the hold."""
        return _name(hold, hold.freed_by) if hold.freed_by else "-"

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Add the names of everybody who made a hold on the page, in one query."""
        page: Any = super().get_changelist_instance(request)
        page.result_list = list(page.result_list)
        known = actors.names(hold.by for hold in page.result_list)
        for hold in page.result_list:
            hold.names = known
        return page


@admin.register(TechnicalHold)
class TechnicalHoldAdmin(Holds, ReadOnlyAdmin):
    """Technical holds: of open gates, forks, names and unsettled effects. Whatever made one frees it."""

    reason_words = words_of("reason")
    list_display = ("about", "of_run", "kind", "reason_words", "made_by", "created_at", "freed_at")
    list_filter = (make_value_filter("kind", "kind", lambda: TECHNICAL), HoldStateFilter)

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        """List the columns of a hold that can be shown as text."""
        return ["of_run", "kind", "about", "reason_words", "made_by", "created_at", "freed_at", "let_go_by"]

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Hold]:
        """Return all holds but the legal ones."""
        return super().get_queryset(request).exclude(kind=Hold.Kind.LEGAL)


@admin.register(Hold)
class HoldAdmin(TakesOrders, Holds):
    """Legal holds: set and freed by people."""

    form = LegalHoldForm
    list_display = ("about", "of_run", "reason", "made_by", "created_at", "freed_at")
    list_filter = (HoldStateFilter,)
    change_form_template = "admin/checkpoints/hold/change_form.html"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Hold]:
        """Return the legal holds."""
        return super().get_queryset(request).filter(kind=Hold.Kind.LEGAL)

    def get_fields(self, request: HttpRequest, obj: Hold | None = None) -> tuple[str, ...]:
        """List three fields to fill in; for an existing hold, every column."""
        if obj is None:
            return ("run_number", "seq", "reason")
        return ("of_run", "about", "reason", "made_by", "created_at", "freed_at", "let_go_by")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow those who may set legal holds and see everything."""
        return may_everywhere(request.user, SET_LEGAL_HOLD, VIEW_EVENT)

    def save_model(self, request: HttpRequest, obj: Hold, form: Any, change: bool) -> None:
        """Set the hold, with its event."""
        data = form.cleaned_data
        made = holds.hold(data["run"], data.get("seq"), data["reason"], by=actors.of_user(request.user))
        obj.__dict__.update({key: value for key, value in made.__dict__.items() if key != "_state"})
        obj._state.adding = False

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Accept the order to free a hold."""
        return {"<int:hold>/releases": self.release}

    def may_order(self, request: HttpRequest) -> bool:
        """Allow those who may set legal holds."""
        return self.has_add_permission(request)

    def release(self, request: HttpRequest, hold: int) -> HttpResponse:
        """Free a legal hold."""
        held = get_object_or_404(Hold.objects.select_related("run"), pk=hold, kind=Hold.Kind.LEGAL)
        with transaction.atomic():
            freed = holds.release(held, by=actors.of_user(request.user))
        words = f"The hold on {held.run} is freed."
        words = words if freed else "Somebody else already freed that hold."
        messages.success(request, words) if freed else messages.warning(request, words)
        return redirect("admin:checkpoints_hold_change", held.pk)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Add the button that frees a legal hold, for those who may."""
        held = self.get_object(request, object_id)
        legal = held is not None and held.kind == Hold.Kind.LEGAL and held.freed_at is None
        may = {"may_release": legal and may_everywhere(request.user, SET_LEGAL_HOLD), "held": held}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | may)


def _name(hold: Hold, actor: str) -> str:
    known: dict[str, str] = getattr(hold, "names", None) or actors.names([actor])
    return known[actor]
