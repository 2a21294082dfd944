"""Approval, access and servers of one thread, as a client may set them.

Owns: which of the wire's many shapes for them mean what to the library.
Never: asks whether the client may: whoever speaks to the app server acts for the user.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from interlock.surfaces.rpc.method import Params
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.overrides import ThreadOverrides


class GranularFlags(Params):
    """Which kinds of questions may be asked; the host knows that of elicitations only."""

    mcp_elicitations: bool = Field(alias="mcp_elicitations")  # snake case there


class Granular(Params):
    granular: GranularFlags


ApprovalPolicy: TypeAlias = Literal["untrusted", "on-failure", "on-request", "never"] | Granular
"""All but "never" ask whenever an approval is wanted."""

SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]


class SandboxPolicy(Params):
    """The host keeps no sandbox; it looks at whether access is full."""

    type: Literal["dangerFullAccess", "readOnly", "externalSandbox", "workspaceWrite"]


_APPROVAL: Final[TypeAdapter[ApprovalPolicy]] = TypeAdapter(ApprovalPolicy)
_SANDBOX: Final[TypeAdapter[SandboxMode]] = TypeAdapter(SandboxMode)
_SERVERS: Final = "mcp_servers"
_DEPTH: Final = 3
"""Levels of a key such as mcp_servers.NAME.enabled."""


def overrides_of(
    approval: ApprovalPolicy | None, *, full_access: bool | None, servers: Mapping[str, bool] | None = None
) -> ThreadOverrides:
    elicitations = approval.granular.mcp_elicitations if isinstance(approval, Granular) else True
    return ThreadOverrides(
        approval=None if approval is None else "never" if approval == "never" else "on-request",
        mcp_elicitations=None if approval is None else elicitations,
        full_access=full_access,
        servers=servers or {},
    )


def overrides_of_config(config: Mapping[str, Any]) -> ThreadOverrides:
    """Of a map from keys of the configuration, with or without dots, to values: three keys count.

    `approval_policy`, `sandbox_mode` and `mcp_servers.NAME.enabled`.

    Raises:
        InvalidRequest: one of them has a value of a wrong kind.
    """
    mode = _checked(_SANDBOX, config, "sandbox_mode")
    return overrides_of(
        _checked(_APPROVAL, config, "approval_policy"),
        full_access=None if mode is None else mode == "danger-full-access",
        servers=dict(_enabled_servers(config)),
    )


def _checked(kind: TypeAdapter[Any], config: Mapping[str, Any], key: str) -> Any:
    value = config.get(key)
    if value is None:
        return None
    try:
        return kind.validate_python(value, strict=True)
    except ValidationError as error:
        raise InvalidRequest(f"cannot use the value of {key!r} in `config`: it is none that this key takes") from error


def _enabled_servers(config: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    for path, value in _leaves(config, ()):
        match path:
            case (first, name, "enabled") if first == _SERVERS:
                if not isinstance(value, bool):
                    raise InvalidRequest(f"`{_SERVERS}.{name[:100]}.enabled` in `config` must be true or false")
                yield name, value
            case _:
                pass


def _leaves(config: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Values with their whole keys, not deeper than counts."""
    for key, value in config.items():
        path = (*above, *key.split("."))
        if isinstance(value, Mapping) and len(path) < _DEPTH:
            yield from _leaves(value, path)
        else:
            yield path, value
