"""`interlock mcp …`: looking at MCP servers and asking them.

Owns: the commands' names, options and help.
Never: talks to a server; the modules imported inside do.
"""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from interlock.surfaces.cli import mcp_edit_commands
from interlock.surfaces.cli.lazy_group import new_app
from interlock.surfaces.cli.options import (
    ConfigOption,
    CursorOption,
    JsonOption,
    ServerArgument,
    ServerOption,
    SetOption,
)

app = new_app("Configure MCP servers, look at them and ask them.")


@app.command("list")
def list_servers(config: ConfigOption = None, json: JsonOption = False) -> int:
    """Start every server and show its state."""
    from interlock.surfaces.cli import mcp_list, running

    return running.run_at_once(partial(mcp_list.show, config, json))


app.command("get")(mcp_edit_commands.get)
app.command("add")(mcp_edit_commands.add)
app.command("remove")(mcp_edit_commands.remove)
app.command("enable")(mcp_edit_commands.enable)
app.command("disable")(mcp_edit_commands.disable)
app.command("import")(mcp_edit_commands.take_over)


@app.command("tools")
def list_tools(server: ServerOption = None, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Show the tools of all servers, or of one."""
    from interlock.surfaces.cli import mcp_tools, running

    return running.run(partial(mcp_tools.show, config, server, json))


@app.command("resources")
def list_resources(
    server: ServerOption = None, cursor: CursorOption = None, config: ConfigOption = None, json: JsonOption = False
) -> int:
    """Show the resources of all servers, or one page of one."""
    from interlock.surfaces.cli import mcp_resources, running

    return running.run(partial(mcp_resources.show, mcp_resources.RESOURCES, config, server, cursor, json))


@app.command("templates")
def list_templates(
    server: ServerOption = None, cursor: CursorOption = None, config: ConfigOption = None, json: JsonOption = False
) -> int:
    """Show the resource templates of all servers, or of one."""
    from interlock.surfaces.cli import mcp_resources, running

    return running.run(partial(mcp_resources.show, mcp_resources.TEMPLATES, config, server, cursor, json))


@app.command("read")
def read_resource(
    server: ServerArgument,
    uri: Annotated[str, typer.Argument(metavar="URI", help="The resource's URI; with --set, a template of one.")],
    values: SetOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Print a resource, or with --set what a template leads to."""
    from interlock.surfaces.cli import mcp_read, running

    return running.run(partial(mcp_read.show, config, server, uri, values or (), json))


@app.command("prompts")
def list_prompts(
    server: ServerOption = None,
    name: Annotated[str | None, typer.Argument(metavar="[PROMPT]", help="Print this prompt of SERVER.")] = None,
    values: SetOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Show the prompts of all servers, or one filled in."""
    from interlock.surfaces.cli import mcp_prompts, running

    return running.run(partial(mcp_prompts.show, config, server, name, values or (), json))


@app.command("complete")
def complete(
    server: ServerArgument,
    argument: Annotated[str, typer.Argument(metavar="ARGUMENT", help="The prompt's argument, or template's variable.")],
    value: Annotated[str, typer.Argument(metavar="[VALUE]", help="How the value begins.")] = "",
    prompt: Annotated[str | None, typer.Option("--prompt", metavar="NAME", help="An argument of this prompt.")] = None,
    template: Annotated[
        str | None, typer.Option("--template", metavar="TEMPLATE", help="A variable of this resource template.")
    ] = None,
    values: SetOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Show what a server proposes for an argument. It is one of a prompt, or a variable of a template."""
    from interlock.surfaces.cli import mcp_complete, running

    wish = mcp_complete.Wish(
        server=server, argument=argument, value=value, prompt=prompt, template=template, given=values or ()
    )
    return running.run(partial(mcp_complete.show, wish, config, json))


@app.command("call")
def call_tool(
    server: ServerArgument,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name at its server.")],
    arguments: Annotated[
        str, typer.Argument(metavar="[ARGUMENTS]", help="A JSON object, or - to read it from stdin.")
    ] = "{}",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Call a tool and print its result. Nobody is asked: you just asked for it."""
    from interlock.surfaces.cli import mcp_call, running

    return running.run(partial(mcp_call.show, config, server, tool, arguments, json))


@app.command("trust")
def trust(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Only this file (default: the files of this folder).")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> int:
    """Let files of this folder start commands. Those are .mcp.json and .interlock.toml, as they are now."""
    from interlock.surfaces.cli import mcp_trust, running

    return running.run_at_once(partial(mcp_trust.trust, file, yes, json))
