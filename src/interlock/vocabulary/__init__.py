"""The frozen values and Protocols that every room may use.

Owns: names and shapes. One module a concept.
Never: imports another room, waits, or touches the world.
"""
