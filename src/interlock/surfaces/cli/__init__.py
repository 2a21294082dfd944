"""The command `interlock`.

Owns: commands, their output for people and for programs, the translation of errors to exit status.
Never: imports what a command does not need; `interlock --help` loads typer and nothing of the library.
"""
