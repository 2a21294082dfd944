"""What a client may decide for the turns of a thread.

Owns: which overrides are honoured, and the settings that follow from them.
Never: keeps an override itself: the library's Thread does, over reloads too.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interlock import models
from interlock.surfaces.rpc import projection, shapes
from interlock.surfaces.rpc.live import LiveThread
from interlock.surfaces.rpc.method import Params
from interlock.surfaces.rpc.overrides import ApprovalPolicy, SandboxMode, overrides_of, overrides_of_config
from interlock.surfaces.rpc.turn_settings import TurnSettings
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.overrides import ThreadOverrides
from interlock.vocabulary.ports import Model

if TYPE_CHECKING:
    from interlock.surfaces.rpc.application import Application


class Overrides(Params):
    """The members of thread/start, resume and fork that we honour; others are accepted and have no effect."""

    model: str | None = None
    model_provider: str | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    approval_policy: ApprovalPolicy | None = None
    sandbox: SandboxMode | None = None
    config: dict[str, Any] | None = None

    @property
    def of_thread(self) -> ThreadOverrides:
        """What the library keeps; a member of its own counts more than one of `config`. InvalidRequest: as there."""
        full_access = None if self.sandbox is None else self.sandbox == "danger-full-access"
        named = overrides_of(self.approval_policy, full_access=full_access)
        return named.over(overrides_of_config(self.config or {}))

    def merged_into(self, settings: TurnSettings, model: str | None) -> TurnSettings:
        """`settings` with what is set here."""
        return replace(
            settings,
            model=model or settings.model,
            base_instructions=settings.base_instructions if self.base_instructions is None else self.base_instructions,
            developer_instructions=settings.developer_instructions
            if self.developer_instructions is None
            else self.developer_instructions,
        )


def permitted(application: "Application", overrides: ThreadOverrides) -> ThreadOverrides:
    """The same overrides. InvalidRequest: the configuration does not allow them."""
    overrides.refuse_beyond(application.host.configuration.policy)
    return overrides


def checked_model(application: "Application", params: Overrides) -> str | None:
    """The model that is asked for. InvalidRequest: its provider is another than the one in use."""
    provider = params.model_provider
    if provider is not None and provider != application.provider:
        raise InvalidRequest(
            f"the model provider {provider[:100]!r} is not in use; the configuration's model_provider is "
            f"{application.provider!r}"
        )
    return params.model or None


def model_named(application: "Application", name: str | None) -> Model | None:
    """The model of that name at the configured provider; None leaves it to the thread."""
    config = application.host.configuration.model
    if name is None or name == config.name:
        return None
    return models.from_configuration(replace(config, name=name))


def settings_shape(application: "Application", live: LiveThread) -> shapes.ThreadSettings:
    policy = live.thread.next_policy
    model = live.settings.model or application.host.configuration.model.name or ""
    instructions = live.settings.developer_instructions
    return {
        "cwd": application.working_folder,
        "approvalPolicy": projection.approval_shape(policy),
        "approvalsReviewer": "user",
        "sandboxPolicy": projection.sandbox_shape(policy),
        "activePermissionProfile": None,
        "model": model,
        "modelProvider": application.provider,
        "serviceTier": None,
        "effort": None,
        "summary": None,
        "collaborationMode": {
            "mode": live.settings.mode,
            "settings": {"model": model, "reasoning_effort": None, "developer_instructions": instructions},
        },
        "multiAgentMode": "explicitRequestOnly",
        "personality": None,
    }


def tell_settings(application: "Application", live: LiveThread, before: shapes.ThreadSettings) -> None:
    """Tell the thread's followers of its settings, if they are others than `before`."""
    now = settings_shape(application, live)
    if now != before:
        live.tell([("thread/settings/updated", {"threadId": live.thread.id, "threadSettings": now})])
