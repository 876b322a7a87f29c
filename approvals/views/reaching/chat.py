"""Looks the signed-in person up in Slack again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from approvals.channels import slack
from approvals.views.access import private, reader_of


@require_POST
@private
def look_again(request: HttpRequest) -> HttpResponse:
    """Have the next message look for the person by the e-mail address of their account."""
    slack.look_again(reader_of(request))
    return HttpResponseRedirect(reverse("notifications") + "#channels", status=303)
