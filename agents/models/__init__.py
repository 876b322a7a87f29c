from .effect import Effect
from .failure import Failure
from .memo import Memo
from .sweeper import SweeperPass

__all__ = ["Effect", "Failure", "Memo", "SweeperPass"]
