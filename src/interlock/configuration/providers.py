"""One table `[model_providers.NAME]` becomes one ProviderConfig.

Owns: the rules of a provider table and its defaults.
Never: looks up the API key; that happens when a model is used.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from interlock.configuration.codex import ONLY_CODEX_PROVIDER
from interlock.configuration.findings import Findings, Resolver
from interlock.configuration.references import Lookup, Reference
from interlock.configuration.tables import ProviderTable, read_table, unknown_keys
from interlock.configuration.values import Problem, ProviderConfig
from interlock.vocabulary.secret import Secret


def build_provider(
    key: str, table: Any, file: str, environment: Mapping[str, str], find: Lookup
) -> tuple[ProviderConfig, tuple[Problem, ...]]:
    """The provider, with all that was found wrong; it has a `problem` when something is fatal."""
    findings = Findings(file, f"model_providers.{key}")
    if not isinstance(table, Mapping):
        findings.refuse(None, "must be a table")
        table = {}
    for name, sentence in unknown_keys(ProviderTable, table, ONLY_CODEX_PROVIDER):
        findings.warn(name, sentence)
    checked, wrong = read_table(ProviderTable, table)
    for name, sentence in wrong:
        findings.refuse(name, sentence)
    provider = _provider(key, checked or ProviderTable(), Resolver(environment, find, findings))
    return replace(provider, problem=findings.verdict), tuple(findings.problems)


def _provider(key: str, table: ProviderTable, resolver: Resolver) -> ProviderConfig:
    builtin = ProviderConfig() if key == "openai" else None
    default = ProviderConfig()
    if table.base_url is None and builtin is None and resolver.findings.verdict is None:
        resolver.findings.refuse("base_url", 'is missing; write the address, such as "http://localhost:11434/v1"')
    idle = table.stream_idle_timeout_ms
    return ProviderConfig(
        key=key,
        name=table.name or key,
        base_url=default.base_url if table.base_url is None else resolver.text("base_url", table.base_url),
        wire_api=table.wire_api or default.wire_api,
        env_key=table.env_key or (builtin.env_key if builtin else None),
        bearer_token=_bearer_token(table.experimental_bearer_token, resolver),
        http_headers=_headers(table, resolver),
        query_params={k: resolver.text(f"query_params.{k}", v) for k, v in (table.query_params or {}).items()},
        request_max_retries=_or(table.request_max_retries, default.request_max_retries),
        stream_max_retries=_or(table.stream_max_retries, default.stream_max_retries),
        stream_idle_timeout=idle / 1000 if idle else default.stream_idle_timeout,
    )


def _bearer_token(token: str | Secret | Reference | None, resolver: Resolver) -> Secret | None:
    if token is None:
        return None
    if isinstance(token, str):
        resolver.findings.warn(
            "experimental_bearer_token", "a token does not belong into a file; write env_key or a reference instead"
        )
    return resolver.secret("experimental_bearer_token", token)


def _headers(table: ProviderTable, resolver: Resolver) -> dict[str, Secret]:
    headers = {k: resolver.secret(f"http_headers.{k}", v) for k, v in (table.http_headers or {}).items()}
    for name, variable in (table.env_http_headers or {}).items():
        found = resolver.variable(variable)
        if found is None:
            key = f"env_http_headers.{name}"
            resolver.findings.warn(key, f"the environment variable {variable} is not set; the header is left out")
        else:
            headers[name] = found
    return headers


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
