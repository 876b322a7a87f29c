"""What follows from an approval, until it has begun."""

from .unrun import Unrun

__all__ = ["Unrun"]
