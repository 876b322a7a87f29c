"""MCP: Holdpoint's tools for any client, a gateway before other servers, and a hook for Claude Code.

Nothing is imported here, so that the hook starts without the MCP library.
"""
