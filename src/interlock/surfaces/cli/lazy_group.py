"""A group whose commands are loaded when one of them is used.

Owns: loading one command of a table; what typer need not convert.
Never: loads a command to show its help line, or imports anything but typer.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as made_by_typer

from interlock.surfaces.cli.command_table import Place


def _no_help_wanted(option: Any) -> Any:
    """With a default: to convert the None of an option that is not given, typer would load pydantic."""
    if option is not None:
        option.default = False
    return option


class SpareCommand(TyperCommand):
    """A command that converts what is given only: for the rest typer would load pydantic, as long as itself again."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        for parameter in self.params:
            if parameter.callback is None and not parameter.required:
                process: Any = partial(_processed, parameter, parameter.process_value)
                parameter.process_value = process  # type: ignore[method-assign]  # typer lets nobody choose the class

    def get_help_option(self, ctx: Any) -> Any:
        return _no_help_wanted(super().get_help_option(ctx))


class SpareGroup(TyperGroup):
    def get_help_option(self, ctx: Any) -> Any:
        return _no_help_wanted(super().get_help_option(ctx))


class _App(typer.Typer):
    def command(self, *arguments: Any, **attributes: Any) -> Any:
        return super().command(*arguments, **({"cls": SpareCommand} | attributes))


def new_app(help: str | None = None) -> typer.Typer:  # noqa: A002 -- typer's own word
    """The Typer of one command's module; `help` makes it a group."""
    grouped = help is not None
    return _App(cls=SpareGroup, help=help, no_args_is_help=grouped, add_completion=False, rich_markup_mode=None)


def lazy(places: dict[str, Place]) -> type[TyperGroup]:
    """The class of a group that offers the commands of `places` beside those that it is given."""

    class LazyGroup(SpareGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            for name, place in places.items():
                self.add_command(TyperCommand(name, help=place.help))

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """Called to run a command or to complete its words, not to show the help of its group."""
            name, command, rest = super().resolve_command(ctx, args)
            return name, _loaded(places[name].module, name) if name in places else command, rest

    return LazyGroup


def _loaded(module: str, name: str) -> Any:
    command = made_by_typer(import_module(f"interlock.surfaces.cli.{module}").app)
    command.name = name
    return command


def _processed(parameter: Any, process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    if value is None:
        return () if parameter.multiple or parameter.nargs == -1 else None
    if value is parameter.default and isinstance(value, int):
        return value
    return process(context, value)
