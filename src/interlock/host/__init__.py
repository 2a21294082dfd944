"""The process: configuration, store, pool, and the Threads that are loaded.

Owns: what all Threads share.
Never: looks into a Thread; it only opens, finds and closes them.
"""
