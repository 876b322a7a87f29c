from .effect import Effect
from .failure import Failure
from .sweeper import SweeperPass

__all__ = ["Effect", "Failure", "SweeperPass"]
