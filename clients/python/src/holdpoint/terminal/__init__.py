"""The terminal for people who review: commands for scripts, and `holdpoint inbox`, which needs the extra `terminal`.

Everything goes over the HTTP API with a token of the person's own. Only `holdpoint.terminal.app` imports Textual.
"""
