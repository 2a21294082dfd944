"""The ways in from outside: the command line; the app server and the console come later.

Owns: translating between the outside's words and the library's.
Never: holds state that outlives a request, or decides what the library decides.
"""
