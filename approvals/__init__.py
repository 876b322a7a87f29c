"""Gates, the people who decide on them, and what they see before they do."""

import sys
from pathlib import Path

# The server uses the Python client, which lies beside it and is not installed: one rule for the characters that nobody
# sees, the adapters' codecs, the MCP tools.
sys.path.append(str(Path(__file__).resolve().parent.parent / "clients" / "python" / "src"))
