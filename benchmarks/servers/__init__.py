"""MCP servers that are never the bottleneck: the standard library only, answers encoded once."""
