from .effect import Effect
from .failure import Failure

__all__ = ["Effect", "Failure"]
