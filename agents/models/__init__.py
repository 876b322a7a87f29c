from .effect import Effect
from .failure import Failure
from .memo import Memo
from .sweeper import SweeperPass
from .token import Scope, Token

__all__ = ["Effect", "Failure", "Memo", "Scope", "SweeperPass", "Token"]
