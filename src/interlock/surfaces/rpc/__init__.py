"""The app server: a Host driven over JSON-RPC, in the shapes that clients of Codex's app server (v2) speak.

Owns: the wire: messages, methods, shapes, transports.
Never: does what a user of the library could not do (RPC-1).
"""
