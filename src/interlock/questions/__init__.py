"""Elicitation and approval: everything that ends at a person.

Owns: the one road for questions of servers and of the host's own policy.
Never: draws a form, opens a URL, or speaks to a server.
"""
