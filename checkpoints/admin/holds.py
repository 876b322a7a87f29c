"""Holds: all of them to look at; legal ones are set and freed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from checkpoints import actors
from checkpoints.errors import CheckpointError, NoSuchCheckpoint
from checkpoints.models import Checkpoint, Hold, Run
from checkpoints.retention import holds

from .base import ALL, OfAllTeams

if TYPE_CHECKING:
    OfHold = admin.ModelAdmin[Hold]
    HoldModelForm = forms.ModelForm[Hold]
else:
    OfHold, HoldModelForm = admin.ModelAdmin, forms.ModelForm
MAY = "checkpoints.set_legal_hold"


class LegalHoldForm(HoldModelForm):
    """A legal hold on a run, or on one of its checkpoints."""

    run_number = forms.IntegerField(label="Run", min_value=1, help_text="The run's number: 7 for R-7.")
    seq = forms.IntegerField(
        label="Checkpoint", min_value=1, required=False, help_text="Its number. Empty: the whole run is held."
    )
    reason = forms.CharField(max_length=holds.LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 3}))

    class Meta:
        model = Hold
        fields = ("reason",)

    def clean(self) -> dict[str, Any]:
        """Take the run's lock, so that nothing is pruned between this look and the hold."""
        said: dict[str, Any] = super().clean() or {}
        run = Run.objects.filter(pk=int(said.get("run_number") or 0)).first()
        if run is None:
            if "run_number" in said:
                self.add_error("run_number", "There is no such run.")
            return said
        try:
            if said.get("seq"):
                holds.locked(run, said["seq"])
        except NoSuchCheckpoint:
            self.add_error("seq", f"{run} has no checkpoint {said['seq']}.")
        except CheckpointError as gone:
            self.add_error("seq", str(gone))
        return said | {"run": run}


class Standing(admin.SimpleListFilter):
    """Those that hold something still, or no more."""

    title = "state"
    parameter_name = "freed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The two."""
        return [("no", "still held"), ("yes", "freed")]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Hold]) -> models.QuerySet[Hold]:
        """Those of the one that was chosen."""
        wanted = {"no": True, "yes": False}.get(self.value() or "")
        return queryset if wanted is None else queryset.filter(freed_at__isnull=wanted)


@admin.register(Hold)
class HoldAdmin(OfAllTeams, OfHold):
    """What must live, and why."""

    form = LegalHoldForm
    actions = None
    list_display = ("run", "kind", "about", "reason", "made_by", "created_at", "freed_at")
    list_filter = ("kind", Standing)
    search_fields = ("reason", "=run__id")
    list_select_related = ("run",)
    list_per_page = 50
    show_full_result_count = False
    change_form_template = "admin/checkpoints/hold/change_form.html"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Hold]:
        """With the number of the checkpoint, which is what people know it by."""
        held = Checkpoint.objects.filter(pk=models.OuterRef("checkpoint")).values("seq")
        found: models.QuerySet[Hold] = super().get_queryset(request)
        return found.annotate(seq=models.Subquery(held))

    @admin.display(description="Holds")
    def about(self, hold: Hold) -> str:
        """A checkpoint, or all of the run."""
        return (
            "the whole run"
            if hold.checkpoint is None
            else f"checkpoint {getattr(hold, 'seq', None) or hold.checkpoint}"
        )

    @admin.display(description="By")
    def made_by(self, hold: Hold) -> str:
        """Whoever made it, by name."""
        return _name(hold, hold.by)

    @admin.display(description="Freed by")
    def let_go_by(self, hold: Hold) -> str:
        """Whoever freed it, by name."""
        return _name(hold, hold.freed_by) if hold.freed_by else "-"

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """With the names of all who made the holds of the page, read at once."""
        page: Any = super().get_changelist_instance(request)
        page.result_list = list(page.result_list)
        known = actors.names(hold.by for hold in page.result_list)
        for hold in page.result_list:
            hold.names = known
        return page

    def get_fields(self, request: HttpRequest, obj: Hold | None = None) -> tuple[str, ...]:
        """Three to fill in; every column of one that is there."""
        if obj is None:
            return ("run_number", "seq", "reason")
        return ("run", "kind", "about", "reason", "made_by", "created_at", "freed_at", "let_go_by")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may set legal holds, and sees what there is to hold."""
        return request.user.has_perm(MAY) and request.user.has_perm(ALL)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """A hold is made and freed, and not changed."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """One that was freed stays in the list."""
        return False

    def save_model(self, request: HttpRequest, obj: Hold, form: Any, change: bool) -> None:
        """Hold what was named, with its event."""
        said = form.cleaned_data
        made = holds.hold(said["run"], said.get("seq"), said["reason"], by=actors.of_user(request.user))
        obj.__dict__.update({key: value for key, value in made.__dict__.items() if key != "_state"})
        obj._state.adding = False

    def get_urls(self) -> list[URLPattern]:
        """With the address to which a release is sent."""
        own = path(
            "<int:hold>/releases/", self.admin_site.admin_view(self.release), name="checkpoints_hold_release"
        )  # fmt: skip
        return [own, *super().get_urls()]

    def release(self, request: HttpRequest, hold: int) -> HttpResponse:
        """Free a legal hold."""
        if request.method != "POST":
            return HttpResponse(status=405, headers={"Allow": "POST"})
        if not self.has_add_permission(request):
            raise PermissionDenied
        held = get_object_or_404(Hold.objects.select_related("run"), pk=hold, kind=Hold.Kind.LEGAL)
        with transaction.atomic():
            freed = holds.release(held, by=actors.of_user(request.user))
        words = f"The hold on {held.run} is freed." if freed else "Somebody had freed that hold already."
        messages.success(request, words) if freed else messages.warning(request, words)
        return redirect("admin:checkpoints_hold_change", held.pk)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """With the button that frees a legal hold, for those who may."""
        held = self.get_object(request, object_id)
        legal = held is not None and held.kind == Hold.Kind.LEGAL and held.freed_at is None
        may = {"may_release": legal and request.user.has_perm(MAY), "held": held}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | may)


def _name(hold: Hold, actor: str) -> str:
    known: dict[str, str] = getattr(hold, "names", None) or actors.names([actor])
    return known[actor]
