"""A person's rows beside Django's account: their choices, and the sessions in which they are signed in."""

from .profile import Profile
from .signed_in import SignedIn

__all__ = ["Profile", "SignedIn"]
