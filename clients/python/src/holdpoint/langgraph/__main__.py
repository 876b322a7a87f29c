"""python -m holdpoint.langgraph: the command of `importing`."""

import sys

from . import importing

sys.exit(importing.main())
