"""A demonstration without network and without keys: python -m interlock.demo, or `interlock demo`.

A scripted model works with four live MCP servers and a dead one; what happens is shown as it happens.
"""
