"""What a Thread has been: its journal, and what follows from it.

Owns: the one writer of a Thread's events, the fold of events into turns and history, the clipping of text.
Never: knows a database; stores are reached through the port EventStore.
"""
