"""Live MCP connections: one task owns one session.

Owns: processes, HTTP sessions, negotiation, supervision, paging, the pool, generations and leases.
Never: knows Threads, tools' public names, or policy.
"""
