"""Reads the person of a request's session by a statement that is built once, as every request of a page reads them.

Only a session that plainly verifies is taken here. Any other is left to Django, which knows retired secrets and ends
sessions that are void, so that nobody is signed in whom it would refuse.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject

from checkpoints.postgresql.prepared_rows import prepared_statement


class PreparedAuthentication(AuthenticationMiddleware):
    """Django's middleware with `person_of`, which is asked when a view first needs the person."""

    def process_request(self, request: HttpRequest) -> None:
        """Set the request's person."""
        super().process_request(request)
        request.user = SimpleLazyObject(partial(person_of, request))  # type: ignore[assignment]


def person_of(request: HttpRequest) -> Any:
    """Return the person signed in by the request's session, or AnonymousUser, as `get_user` of Django does."""
    session = request.session
    number, verifies = session.get(SESSION_KEY), session.get(HASH_SESSION_KEY)
    if number and verifies and session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS:
        for person in _people(int(number)):
            if person.is_active and constant_time_compare(verifies, person.get_session_auth_hash()):
                return person
    return get_user(request)


@prepared_statement
def _people(number: Any) -> QuerySet[User]:
    return User.objects.filter(pk=number)
