"""The administration's site: its index is sorted by what somebody wants to do, not by where a table's code is."""

from __future__ import annotations

from typing import Any

from allauth.account.decorators import secure_admin_login
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# By section, the tables in the order in which they are listed, each with what it is for.
SECTIONS: dict[str, dict[str, str | Promise]] = {
    "People": {
        "auth.user": _("Who signs in, and what each may do."),
        "auth.group": _("Who works together, and what members may do."),
    },
    "Policies": {
        "approvals.policy": _("Who must approve, how many of them, and by when."),
        "approvals.tool": _("How what is asked under a tool is shown, and what it has to fit."),
    },
    "Retention": {
        "checkpoints.retentionpolicy": _("Which checkpoints are kept, and for how long."),
        "checkpoints.prune": _("Dry runs, and what was deleted."),
        "checkpoints.hold": _("Runs and checkpoints that must not be deleted, set by people."),
        "checkpoints.technicalhold": _("What open gates, forks, names and unsettled effects keep."),
    },
    "Integrations": {
        "approvals.webhook": _("Addresses that are told when a gate opens or closes."),
        "approvals.delivery": _("Each message to a webhook, and whether it arrived."),
        "agents.token": _("API tokens of people and agents."),
    },
    "Records": {
        "checkpoints.run": _("One execution of an agent each."),
        "approvals.gate": _("What people were asked."),
        "approvals.decision": _("What each reviewer said."),
        "approvals.outcome": _("How each gate ended."),
        "approvals.proposal": _("Each version of what was asked."),
        "approvals.grant": _("Each right to perform an effect."),
        "agents.effect": _("What agents did outside, and what became of it."),
        "agents.failure": _("Attempts of steps that failed."),
        "checkpoints.checkpoint": _("Each saved state, without its content."),
        "checkpoints.plan": _("The versions of each agent."),
        "checkpoints.event": _("What happened, as stored."),
        "checkpoints.seal": _("What reveals a changed event."),
        "checkpoints.verification": _("Each check of the seals."),
    },
}
ELSE = "Records"  # where a table is listed that is not named above


class Site(AdminSite):
    """Holdpoint's administration."""

    site_header = site_title = _("Holdpoint administration")
    index_title = _("Administration")

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect to the one sign-in, whose attempts are counted: Django's own would let passwords be guessed."""
        answer: HttpResponse = secure_admin_login(super().login)(request, extra_context)
        return answer

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the one page for it, whose attempts are counted and recorded."""
        return redirect("account_change_password")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """List what somebody may open, by section; of one of Django's apps as Django does."""
        if app_label is not None:
            return super().get_app_list(request, app_label)
        found = [model for app in self._build_app_dict(request).values() for model in app["models"]]
        by_label = {model["model"]._meta.label_lower: model for model in found}
        index = reverse("admin:index", current_app=self.name)
        sections = []
        for name, tables in SECTIONS.items():
            rest = [label for label in by_label if not section_of(label)] if name == ELSE else []
            models = [
                by_label[label] | {"purpose": tables.get(label, "")} for label in [*tables, *rest] if label in by_label
            ]
            if models:
                about = {"name": name, "app_label": name.lower(), "app_url": f"{index}#{name.lower()}"}
                sections.append(about | {"has_module_perms": True, "models": models})
        return sections


def section_of(label: str) -> str:
    """Return the section that names a table, "auth.user"; "" where none does."""
    return next((name for name, tables in SECTIONS.items() if label in tables), "")
