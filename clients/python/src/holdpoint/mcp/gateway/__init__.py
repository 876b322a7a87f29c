"""A gateway: an MCP server that stands before another one, and asks people before its tools are called."""
