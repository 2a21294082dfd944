"""Interlock: the host between an AI agent and its MCP servers."""
