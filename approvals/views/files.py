"""Keeps the files of a posted form at once, so that the form goes on with their references as text."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat

from approvals.errors import QuotaReached
from approvals.forms import names, texts
from approvals.models import Gate, Upload
from approvals.policy import authority


def form_with_files(request: HttpRequest, gate: Gate, *, by: User) -> dict[str, str]:
    """Return the posted form with the reference of each file that came with it, under the name of its field.

    No file is kept from somebody who may not decide this gate. A file that is too large, or one too many, leaves the
    field as it was; the reason goes under the name of the file's input, which no browser posts as text.
    """
    form = {name: text for name, text in request.POST.dict().items() if not names.is_file(name)}
    sent = [(name, file) for name in request.FILES if names.is_file(name) and (file := request.FILES.get(name))]
    if not sent or gate.status != Gate.Status.OPEN or authority.why_not(by, gate):
        return form
    for name, file in sent:
        prefix, _, path = names.split(name)
        if (file.size or 0) > settings.HOLDPOINT_UPLOAD_LIMIT:
            size, most = filesizeformat(file.size or 0), filesizeformat(settings.HOLDPOINT_UPLOAD_LIMIT)
            form[name] = f"This file has {size}; choose one of at most {most}."
        else:
            try:
                form[prefix + path] = texts.written("file", Upload.objects.keep(gate, file, by=by))
            except QuotaReached as reached:
                form[name] = str(reached)
    return form
