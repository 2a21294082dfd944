"""What a new reading of the configuration changes for the servers.

Owns: the sorting of servers into added, removed, replaced, adjusted and unchanged (CFG-6).
Never: acts upon it; connections of equal identity are carried over by `connections.pool`, whatever stands here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.configuration.values import Configuration
from interlock.vocabulary.server import ServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Names of servers, sorted. `replaced` ones get another connection; of `adjusted` ones only the view changes
    (filters, timeouts, approval, whether they are enabled or required), so nothing restarts. `policy`, `model`:
    whether those changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    adjusted: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    policy: bool = False
    model: bool = False

    def __bool__(self) -> bool:
        """Whether anything changed at all."""
        return any((self.added, self.removed, self.replaced, self.adjusted, self.policy, self.model))


def difference(old: Configuration, new: Configuration) -> Difference:
    """What `new` changes of `old`."""
    both = sorted(old.servers.keys() & new.servers.keys())
    kinds = {name: _kind(old.servers[name], new.servers[name]) for name in both}
    return Difference(
        added=_sorted(new.servers, old.servers),
        removed=_sorted(old.servers, new.servers),
        replaced=tuple(name for name in both if kinds[name] == "replaced"),
        adjusted=tuple(name for name in both if kinds[name] == "adjusted"),
        unchanged=tuple(name for name in both if kinds[name] == "unchanged"),
        policy=old.policy != new.policy,
        model=old.model != new.model,
    )


def _sorted(servers: Mapping[str, ServerConfig], without: Mapping[str, ServerConfig]) -> tuple[str, ...]:
    return tuple(sorted(servers.keys() - without.keys()))


def _kind(old: ServerConfig, new: ServerConfig) -> str:
    if old == new:
        return "unchanged"
    # What the host advertises is the same for both, so it does not matter here.
    return "adjusted" if old.identity({}) == new.identity({}) and old.problem == new.problem else "replaced"
