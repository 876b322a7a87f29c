"""The administration's site: its index is sorted by what somebody wants to do, not by where a table's code is."""

from __future__ import annotations

from typing import Any

from allauth.account.decorators import secure_admin_login
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

# By section, the tables in the order in which they are listed, each with what it is for.
SECTIONS: dict[str, dict[str, str]] = {
    "People": {
        "auth.user": "Who signs in, and what each may do.",
        "auth.group": "Who works together, and what members may do.",
    },
    "Policies": {
        "approvals.policy": "Who must approve, how many of them, and by when.",
        "approvals.tool": "How what is asked under a tool is shown, and what it has to fit.",
    },
    "Retention": {
        "checkpoints.retentionpolicy": "Which checkpoints are kept, and for how long.",
        "checkpoints.prune": "Dry runs, and what was deleted.",
        "checkpoints.hold": "Runs and checkpoints that must not be deleted, set by people.",
        "checkpoints.technicalhold": "What open gates, forks, names and unsettled effects keep.",
    },
    "Integrations": {
        "approvals.webhook": "Addresses that are told when a gate opens or closes.",
        "approvals.delivery": "Each message to a webhook, and whether it arrived.",
        "agents.token": "API tokens of people and agents.",
    },
    "Records": {
        "checkpoints.run": "One execution of an agent each.",
        "approvals.gate": "What people were asked.",
        "approvals.decision": "What each reviewer said.",
        "approvals.outcome": "How each gate ended.",
        "approvals.proposal": "Each version of what was asked.",
        "approvals.grant": "Each right to perform an effect.",
        "agents.effect": "What agents did outside, and what became of it.",
        "agents.failure": "Attempts of steps that failed.",
        "checkpoints.checkpoint": "Each saved state, without its content.",
        "checkpoints.plan": "The versions of each agent.",
        "checkpoints.event": "What happened, as stored.",
        "checkpoints.seal": "What reveals a changed event.",
        "checkpoints.verification": "Each check of the seals.",
    },
}
ELSE = "Records"  # where a table is listed that is not named above


class Site(AdminSite):
    """Holdpoint's administration."""

    site_header = site_title = "Holdpoint administration"
    index_title = "Administration"

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
