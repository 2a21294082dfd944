"""Values that were meant to be variables.

Owns: finding a value of `env` or of a header that is only the name of a variable, as a shell would write it.
Never: shows a value.
"""

import re
from collections.abc import Iterator

from interlock.surfaces.cli.doctor.finding import Finding
from interlock.vocabulary.secret import reveal
from interlock.vocabulary.server import HttpTransport, ServerConfig

VARIABLE = re.compile(r"(?:\w+ )?\$\{?([A-Za-z_]\w*)\}?")
"""`$NAME` or `${NAME}`, also behind a scheme such as `Bearer`. Only the whole value: a password may hold a `$`."""


def examine_values(config: ServerConfig) -> Iterator[Finding]:
    """A warning for every such value that stands in a file: no shell reads it, so the name itself is sent."""
    transport = config.transport
    key, values = (
        ("http_headers", transport.headers) if isinstance(transport, HttpTransport) else ("env", transport.env)
    )
    for name, value in values.items():
        written = VARIABLE.fullmatch(reveal(value)) if value.source == "configuration" else None
        if written is not None:
            bearer = key == "http_headers" and name.lower() == "authorization"
            fix = (
                f'write bearer_token_env_var = "{written[1]}"'
                if bearer
                else f'write a reference: {key} = {{ {name} = {{ env = "{written[1]}" }} }}'
            )
            yield Finding(
                subject=config.name,
                level="warning",
                kind="shell_syntax",
                message=f"`{key}.{name}` is passed on as it is, with the name of a variable in place of its value",
                fix=fix,
            )
