"""python -m holdpoint.langgraph: the command of `importing`."""

import sys

from .importing import main

sys.exit(main())
