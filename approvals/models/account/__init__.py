"""What Holdpoint keeps of a person beside Django's account: their choices, and where they are signed in."""

from .profile import Profile
from .signed_in import SignedIn

__all__ = ["Profile", "SignedIn"]
