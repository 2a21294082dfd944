"""From the options of a command to a configuration.

Owns: which files the command line reads, how their problems are told, which servers can be asked and how long.
Never: starts anything, or loads what starting needs: a wrong name is said at once.
"""

import os
from difflib import get_close_matches
from pathlib import Path

from interlock.configuration import Configuration, home_folder, load, refuse_windows, store_place
from interlock.surfaces.cli.output import warn
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.server import ServerConfig

EMPTY = "no server is configured; `interlock mcp add` adds one, `interlock mcp import` takes over those of other hosts"


def read_configuration(config: Path | None, server: str | None = None) -> Configuration:
    """`--config` over the project's files over the home folder; what is only odd is warned of.

    With `server`, the warnings are those of its table and of no table. Fatal ones are said by the servers they stop.

    Raises:
        InvalidRequest: a file cannot be read or is malformed.
    """
    refuse_windows()
    environment = dict(os.environ)
    configuration = load(config, home=home_folder(environment), project=Path.cwd(), environment=environment)
    for problem in configuration.problems:
        about = problem.table.partition(".")[2]
        if not problem.fatal and (server is None or about in {"", server}):
            warn(str(problem))
    return configuration


def home() -> Path:
    return home_folder(os.environ)


def kept_in() -> Path | str:
    """Where threads are kept: a file, or the URL of a database."""
    return store_place(os.environ)


def is_made(place: Path | str) -> bool:
    """Whether anything can be kept there yet; what a database holds, only it knows."""
    return not isinstance(place, Path) or place.exists()


def start_deadline(config: ServerConfig) -> float:
    """Seconds for a listing of tools: the start, then as long again, so that the server's own reason comes first."""
    return 2 * config.startup_timeout


def call_deadline(config: ServerConfig) -> float:
    """Seconds for one request to a server that may have to start first."""
    return config.startup_timeout + config.tool_timeout


def refuse_unusable(configuration: Configuration, name: str) -> None:
    """Raise InvalidRequest where the named server does not exist, is disabled, or has a table with a problem."""
    refuse_unknown(configuration, name)
    config = configuration.servers[name]
    if not config.enabled:
        raise InvalidRequest(
            f"server {name!r} is disabled in {config.source}; `interlock mcp enable {name}` enables it"
        )
    if config.problem is not None:
        raise InvalidRequest(f"cannot use server {name!r}: {config.problem}")


def refuse_unknown(configuration: Configuration, name: str) -> None:
    """Raise InvalidRequest where no server has this name."""
    if name not in configuration.servers:
        raise InvalidRequest(f"there is no server {name!r}{_instead(name, configuration)}")


def usable(configuration: Configuration) -> tuple[str, ...]:
    """The names of all servers that can be started."""
    return tuple(name for name, c in configuration.servers.items() if c.enabled and c.problem is None)


def unusable(configuration: Configuration) -> dict[str, ServerFailed]:
    """Enabled servers whose tables have problems, as failures beside what the others give."""
    return {
        name: ServerFailed(config.problem, server=name)
        for name, config in configuration.servers.items()
        if config.enabled and config.problem is not None
    }


def _instead(name: str, configuration: Configuration) -> str:
    close = get_close_matches(name, configuration.servers, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    if configuration.servers:
        return f"; there are {', '.join(sorted(configuration.servers))}"
    return "; none is configured: `interlock mcp add` and `interlock mcp import` do that, or use --config FILE"
