"""What a Thread is opened with.

Owns: one reading of the configuration, as far as a Thread needs it, and what overrides of the Thread make of it.
Never: changes; another reading is another value.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from interlock.questions.asking import Reviewer
from interlock.threads.call import CallRules
from interlock.threads.servers import DEFAULT_GRACE
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.overrides import ThreadOverrides
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.ports import Model
from interlock.vocabulary.server import ServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSettings:
    """What a Thread is opened with. `grace` is seconds (CON-3); `default_model` is for turns that name none,
    `model_named` for one that another host began with the model of that name (QST-9).

    `compact_at`: tokens from which on a turn has the history summarised by itself (HIS-4); None: never.
    """

    servers: tuple[ServerConfig, ...] = ()
    policy: Policy = field(default_factory=Policy)
    rules: CallRules = field(default_factory=CallRules)
    default_model: Callable[[], Model] | None = None
    model_named: Callable[[str], Model] | None = None
    grace: float = DEFAULT_GRACE
    reviewer: Reviewer | None = None
    compact_at: int | None = None

    def overridden(self, overrides: ThreadOverrides) -> "ThreadSettings":
        servers = overrides.enabled_servers(self.servers)
        return replace(self, servers=servers, policy=overrides.policy(self.policy))

    def model(self) -> Model:
        """For a turn that names none.

        Raises:
            InvalidRequest: none is configured.
        """
        if self.default_model is None:
            raise InvalidRequest("cannot start a turn without a model; pass one, or configure one")
        return self.default_model()

    def model_again(self, name: str | None) -> Model:
        """For a turn that another host began with that model.

        Raises:
            InvalidRequest: none is configured.
        """
        return self.model() if name is None or self.model_named is None else self.model_named(name)
