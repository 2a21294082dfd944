"""A group whose commands are loaded when one of them is used.

Owns: loading one command of a table.
Never: loads a command to show its help line, or imports anything but typer.
"""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as made_by_typer

from interlock.surfaces.cli.command_table import Place


def new_app(help: str | None = None) -> typer.Typer:  # noqa: A002 -- typer's own word
    """The Typer of one command's module; `help` makes it a group."""
    return typer.Typer(help=help, no_args_is_help=help is not None, add_completion=False, rich_markup_mode=None)


def lazy(places: dict[str, Place]) -> type[TyperGroup]:
    """The class of a group that offers the commands of `places` beside those that it is given."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            for name, place in places.items():
                self.add_command(TyperCommand(name, help=place.help))

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """Called to run a command or to complete its words, not to show the help of its group."""
            name, command, rest = super().resolve_command(ctx, args)
            return name, _loaded(places[name].module, name) if name in places else command, rest

        def get_help_option(self, ctx: Any) -> Any:
            """With a default: to convert the None of an option that is not given, typer would load pydantic."""
            option = super().get_help_option(ctx)
            if option is not None:
                option.default = False
            return option

    return LazyGroup


def _loaded(module: str, name: str) -> Any:
    command = made_by_typer(import_module(f"interlock.surfaces.cli.{module}").app)
    command.name = name
    return command
