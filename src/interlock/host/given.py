"""Servers that a program gives in code.

Owns: what is said of a value that is no ServerConfig, or not the one that its key names.
Never: reads tables: files and their keys are the configuration's.
"""

from collections.abc import Mapping
from typing import cast

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.server import ServerConfig


def given_servers(servers: Mapping[str, ServerConfig] | None) -> dict[str, ServerConfig]:
    """The servers sorted by name; None gives none.

    Programs that nobody type-checks come here with the table of a file, as it is written elsewhere in JSON.

    Raises:
        InvalidRequest: a value is no ServerConfig, or bears another name than its key.
    """
    for name, config in cast("Mapping[str, object]", servers or {}).items():
        if not isinstance(config, ServerConfig):
            raise InvalidRequest(
                f"cannot take server {name!r}: its value is a {type(config).__name__}; write "
                f"interlock.ServerConfig(name={name!r}, transport=interlock.StdioTransport(command=…)), or put the "
                "table into a file for interlock.Host.open"
            )
        if config.name != name:
            raise InvalidRequest(
                f"cannot take server {name!r}: its configuration names it {config.name!r}; give both the same name"
            )
    return dict(sorted((servers or {}).items()))
