"""Claude Code and other MCP clients: the tools, the gateway, the hook, and the cards that people see."""
