"""One conversation: its turns, its steps, its calls, and the rooms that they join.

Owns: what belongs to one Thread.
Never: starts a server, opens a store or reads a file; the Host hands all of that in.
"""
