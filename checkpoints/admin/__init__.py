"""The administration's pages of retention: policies, dry runs and prunes, holds."""

from . import holds, policies, prunes

__all__ = ["holds", "policies", "prunes"]
