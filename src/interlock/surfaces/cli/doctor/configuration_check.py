"""What is wrong in the files, and whether a model could be asked.

Owns: turning the problems of a configuration into findings.
Never: looks at a server's command or starts one.
"""

import importlib.util
from collections.abc import Iterator, Mapping

from interlock.configuration import Configuration
from interlock.surfaces.cli.doctor.finding import Finding, Level
from interlock.vocabulary.errors import InvalidRequest

SUBJECT = "configuration"
MODEL = "model"


def examine_files(
    configuration: Configuration, unreadable: Mapping[str, InvalidRequest], server: str | None
) -> Iterator[Finding]:
    """Which files were read or could not be, and their problems; with `server` those of its table and of no table."""
    for file, error in unreadable.items():
        yield Finding.of_sentence(SUBJECT, "error", "unreadable", error.message, otherwise=f"mend or replace {file}")
    for file in configuration.files:
        if not any(problem.file == file and not problem.table for problem in configuration.problems):
            yield Finding(subject=SUBJECT, level="ok", kind="file", message=f"read {file}")
    if not configuration.files and not unreadable:
        yield Finding(
            subject=SUBJECT,
            level="note",
            kind="no_file",
            message="there is no configuration file yet",
            fix="`interlock mcp add` makes one, `interlock mcp import` takes over the servers of other hosts",
        )
    servers = {config.source: config for config in configuration.servers.values()}
    for problem in configuration.problems:
        config = servers.get(f"{problem.file} [{problem.table}]")
        if config is None or server in (None, config.name):
            level: Level = "error" if problem.fatal and (config is None or config.enabled) else "warning"
            subject = SUBJECT if config is None else config.name
            yield Finding.of_sentence(
                subject, level, "configuration", str(problem), otherwise=f"correct it in {problem.file}"
            )
    if server is not None and server not in configuration.servers:
        message = f"no file that can be read has a server {server!r}"
        fix = f"mend {', '.join(unreadable)}, then run `interlock doctor {server}` again"
        yield Finding(subject=server, level="error", kind="unknown_server", message=message, fix=fix)


def examine_places(places: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    """Servers that are written in two files: the nearest one counts, as a whole."""
    for server, (*others, counts) in places.items():
        for other in others:
            message = f"is written in {other}, too, which is not used: {counts} is nearer"
            fix = "remove one of them, or give it another name"
            yield Finding(subject=server, level="note", kind="written_twice", message=message, fix=fix)


def not_examined() -> Iterator[Finding]:
    """What `examine_model` would say is not known while a file is unread that may name the model or its provider."""
    message = "was not looked at, because it may stand in the file that cannot be read"
    yield Finding(subject=MODEL, level="note", kind="not_examined", message=message, fix="mend that file first")


def examine_model(configuration: Configuration, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Whether `interlock exec` could ask the configured model; the model itself is not asked."""
    model = configuration.model
    if model.name is None:
        message = "no model is named, so `interlock exec` needs --model"
        fix = 'write model = "NAME" at the top of config.toml'
        yield Finding(subject=MODEL, level="note", kind="no_model", message=message, fix=fix)
        return
    if importlib.util.find_spec("openai") is None:
        message = "the package openai, which asks models, is not installed"
        fix = "run: pip install 'interlock[openai]'"
        yield Finding(subject=MODEL, level="error", kind="no_package", message=message, fix=fix)
    try:
        model.provider.api_key(environment)
    except InvalidRequest as error:
        yield Finding.of_sentence(
            MODEL, "error", "no_key", error.message, otherwise="correct the table of its provider"
        )
    else:
        message = f"{model.name} of {model.provider.name} at {model.provider.base_url}"
        yield Finding(subject=MODEL, level="ok", kind="model", message=message)
