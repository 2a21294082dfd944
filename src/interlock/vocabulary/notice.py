"""What wakes people up: transient, may lag, never the authority.

Owns: the shapes of notices.
Never: is stored; woken by a notice, read the owner again.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from interlock.vocabulary.server import ServerReport
from interlock.vocabulary.tool import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNotice:
    """The status of a server changed."""

    report: ServerReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressNotice:
    """A running call has progressed (LIF-6)."""

    turn_id: str
    call_id: str
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaNotice:
    """A piece of visible text of the message `item_id`, which the model writes in the Step `step_id`."""

    turn_id: str
    step_id: str
    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNotice:
    """A piece of a plan that the message `item_id` proposes in plan mode, where its text does not show it (MEM-2)."""

    turn_id: str
    step_id: str
    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUpdatedNotice:
    """A subscribed resource changed; read it again (RES-12)."""

    server: str
    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChangedNotice:
    """A server's resources or prompts are others now; list them again (CON-14). Tools need no notice: the next Step
    has them."""

    server: str
    kind: Literal["resources", "prompts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningNotice:
    """Something the user should know that stops nothing."""

    message: str
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaggedNotice:
    """`missed` notices or events were dropped for this slow subscriber; read again (HIS-6)."""

    missed: int


Notice: TypeAlias = (
    ServerNotice
    | ProgressNotice
    | DeltaNotice
    | PlanNotice
    | ResourceUpdatedNotice
    | ListChangedNotice
    | WarningNotice
    | LaggedNotice
)
