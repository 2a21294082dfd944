"""The methods by which a client finds out where it is: initialize, configuration, models, account.

Owns: what a client is told of this host.
Never: shows a value that may be a secret.
"""

import sys
from typing import Any, Final

from typing_extensions import TypedDict

from interlock.surfaces.rpc import projection
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.errors import Refusal
from interlock.surfaces.rpc.method import After, Context, Count, Method, NoParams, Params
from interlock.surfaces.rpc.peer import INVALID_REQUEST
from interlock.vocabulary.server import HttpTransport, ServerConfig, StdioTransport

SPOKEN_VERSION: Final = "0.163.0"
"""The newest version of the program whose wire this is that clients were tried with which are published for it. They
look for it where that program says its own, and some refuse to work below a minimum; what is newer than 0.150.0, whose
shapes these are, is unknown here and refused or ignored as such."""


class ClientInfo(Params):
    name: str
    version: str
    title: str | None = None


class Capabilities(Params):
    experimental_api: bool = False
    opt_out_notification_methods: list[str] | None = None
    extensions: dict[str, Any] | None = None


class InitializeParams(Params):
    client_info: ClientInfo
    capabilities: Capabilities | None = None


class InitializeResult(TypedDict):
    userAgent: str
    codexHome: str
    platformFamily: str
    platformOs: str


class ConfigParams(Params):
    cwd: str | None = None
    include_layers: bool = False


class ConfigResult(TypedDict):
    config: dict[str, Any]
    origins: dict[str, Any]
    layers: list[Any] | None


class ModelsParams(Params):
    cursor: str | None = None
    limit: Count | None = None
    include_hidden: bool | None = None


class ReasoningEffort(TypedDict):
    reasoningEffort: str
    description: str


class ModelShape(TypedDict):
    id: str
    model: str
    upgrade: None
    upgradeInfo: None
    availabilityNux: None
    displayName: str
    description: str
    hidden: bool
    supportedReasoningEfforts: list[ReasoningEffort]
    defaultReasoningEffort: str
    inputModalities: list[str]
    supportsPersonality: bool
    isDefault: bool


class ModelsResult(TypedDict):
    data: list[ModelShape]
    nextCursor: str | None


class AccountParams(Params):
    refresh_token: bool = False


class AccountResult(TypedDict):
    account: None
    requiresOpenaiAuth: bool


class FoldersParams(Params):
    cwds: list[str] | None = None


class SkillsEntry(TypedDict):
    cwd: str
    skills: list[Any]
    errors: list[Any]


class SkillsResult(TypedDict):
    data: list[SkillsEntry]


class HooksEntry(TypedDict):
    cwd: str
    hooks: list[Any]
    warnings: list[str]
    errors: list[Any]


class HooksResult(TypedDict):
    data: list[HooksEntry]


class Requirements(TypedDict):
    allowedApprovalPolicies: list[str] | None
    allowedSandboxModes: list[str] | None


class RequirementsResult(TypedDict):
    requirements: Requirements | None


# ---- initialize


def initialize(context: Context, params: InitializeParams) -> After:
    client, application = context.client, context.application
    if client.initialized:
        raise Refusal(INVALID_REQUEST, "this connection is initialized already")
    capabilities = params.capabilities or Capabilities()
    client.introduce(
        params.client_info.name,
        opted_out=frozenset(capabilities.opt_out_notification_methods or ()),
        extensions=capabilities.extensions or {},
    )
    name, version = params.client_info.name, params.client_info.version
    result: InitializeResult = {
        "userAgent": f"{name}/{SPOKEN_VERSION} ({sys.platform}) interlock/{application.version} ({name}; {version})",
        "codexHome": application.home,
        "platformFamily": "unix",
        "platformOs": "macos" if sys.platform == "darwin" else sys.platform,
    }
    return After(result, lambda: _warn(context))


def _warn(context: Context) -> None:
    for problem in context.application.host.problems:
        warning = {"summary": str(problem), "details": None, "path": problem.file}
        context.client.notify("configWarning", warning)


# ---- configuration


def read_config(context: Context, params: ConfigParams) -> ConfigResult:
    configuration = context.application.host.configuration
    policy = configuration.policy
    config: dict[str, Any] = {
        "model": configuration.model.name,
        "model_provider": configuration.model.provider.key,
        "approval_policy": projection.approval_shape(policy),
        "sandbox_mode": "danger-full-access" if policy.full_access else "read-only",
        "tool_output_token_limit": configuration.model.tool_output_token_limit,
        "mcp_servers": {name: server_table(server) for name, server in configuration.servers.items()},
    }
    return {"config": config, "origins": {}, "layers": [] if params.include_layers else None}


def server_table(server: ServerConfig) -> dict[str, Any]:
    """The settings of a server without arguments, variables and headers: those may hold secrets."""
    place: dict[str, Any]
    match server.transport:
        case StdioTransport():
            place = {"command": str(server.transport.command)}
        case HttpTransport():
            place = {"url": str(server.transport.url).partition("?")[0]}
    return {
        **place,
        "enabled": server.enabled,
        "required": server.required,
        "startup_timeout_sec": server.startup_timeout,
        "tool_timeout_sec": server.tool_timeout,
    }


def list_models(context: Context, params: ModelsParams) -> ModelsResult:
    """The one model that the configuration names."""
    model = context.application.host.configuration.model
    if model.name is None:
        return {"data": [], "nextCursor": None}
    shape: ModelShape = {
        "id": model.name,
        "model": model.name,
        "upgrade": None,
        "upgradeInfo": None,
        "availabilityNux": None,
        "displayName": model.name,
        "description": f"The configured model, at {model.provider.name}.",
        "hidden": False,
        "supportedReasoningEfforts": [{"reasoningEffort": "medium", "description": "As the provider does by default"}],
        "defaultReasoningEffort": "medium",
        "inputModalities": ["text", "image"],
        "supportsPersonality": False,
        "isDefault": True,
    }
    return {"data": [shape], "nextCursor": None}


def read_account(context: Context, params: AccountParams) -> AccountResult:
    return {"account": None, "requiresOpenaiAuth": False}


def list_skills(context: Context, params: FoldersParams) -> SkillsResult:
    return {"data": [{"cwd": cwd, "skills": [], "errors": []} for cwd in _folders(context.application, params)]}


def list_hooks(context: Context, params: FoldersParams) -> HooksResult:
    folders = _folders(context.application, params)
    return {"data": [{"cwd": cwd, "hooks": [], "warnings": [], "errors": []} for cwd in folders]}


def read_requirements(context: Context, params: NoParams) -> RequirementsResult:
    """What the configuration allows threads to have otherwise; null when that is anything."""
    policy = context.application.host.configuration.policy
    approvals, sandboxes = policy.allowed_approvals, policy.allowed_sandboxes
    if approvals is None and sandboxes is None:
        return {"requirements": None}
    return {
        "requirements": {
            "allowedApprovalPolicies": None if approvals is None else list(approvals),
            "allowedSandboxModes": None if sandboxes is None else list(sandboxes),
        }
    }


def _folders(application: Application, params: FoldersParams) -> list[str]:
    return params.cwds or [application.working_folder]


METHODS: Final = (
    Method(
        name="initialize",
        params=InitializeParams,
        result=InitializeResult,
        run=initialize,
        says="The first request of every connection: who the client is, and what it does not want to hear.",
    ),
    Method(
        name="config/read",
        params=ConfigParams,
        result=ConfigResult,
        run=read_config,
        says="The settings in use, without those that may hold secrets.",
    ),
    Method(
        name="model/list",
        params=ModelsParams,
        result=ModelsResult,
        run=list_models,
        says="The configured model, if there is one.",
    ),
    Method(
        name="account/read",
        params=AccountParams,
        result=AccountResult,
        run=read_account,
        says="No account is needed here.",
    ),
    Method(
        name="skills/list",
        params=FoldersParams,
        result=SkillsResult,
        run=list_skills,
        says="Empty: a client's skills are not ours.",
    ),
    Method(name="hooks/list", params=FoldersParams, result=HooksResult, run=list_hooks, says="Empty: there are none."),
    Method(
        name="configRequirements/read",
        params=NoParams,
        result=RequirementsResult,
        run=read_requirements,
        says="Which approval policies and sandbox modes the configuration allows a thread; null: any.",
    ),
)
