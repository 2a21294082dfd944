"""The commands at the top level, and the help that lists them.

Owns: their names, modules and lines of help, in order; the top-level help as text.
Never: imports anything: this help is what people ask for most often, and loading typer would take longer than Python.
"""

from typing import NamedTuple


class Place(NamedTuple):
    """A command's module in this package, which has a Typer `app`, and its line of help."""

    module: str
    help: str


COMMANDS = {
    "exec": Place("exec_command", "Ask a model that can use your MCP servers."),
    "mcp": Place("mcp_commands", "Configure MCP servers, look at them and ask them."),
    "doctor": Place("doctor_command", "Find out what is wrong with your servers, and how to mend it."),
    "approvals": Place("approvals_command", "Explain which calls need an approval."),
    "threads": Place("threads_commands", "Look at stored threads, and change them."),
    "memory": Place("memory_commands", "See which memories were used."),
    "app-server": Place("app_server_command", "Serve programs over JSON-RPC."),
    "demo": Place("demo_command", "See what Interlock does: no network, no keys."),
}

COMPLETION = "_INTERLOCK_COMPLETE"
"""The variable that a shell sets when it asks for words."""
WIDTH = 80
"""Columns that the text below needs; in a narrower terminal typer wraps it."""
ABOUT = "The host between an AI agent and its MCP servers."
OPTIONS = {
    "--version": "Show the version and exit.",
    "--install-completion": "Install completion for your shell.",
    "--show-completion": "Print the completion script of your shell.",
    "-h, --help": "Show this message and exit.",
}


def top_help() -> str:
    """What typer would print for `interlock --help` at 80 columns."""
    lines = ["Usage: interlock [OPTIONS] COMMAND [ARGS]...", "", f"  {ABOUT}", "", "Options:", *_table(OPTIONS)]
    return "\n".join([*lines, "", "Commands:", *_table({name: place.help for name, place in COMMANDS.items()})])


def _table(rows: dict[str, str]) -> list[str]:
    width = max(map(len, rows))
    return [f"  {name.ljust(width)}  {words}" for name, words in rows.items()]
