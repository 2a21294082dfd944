"""Approvals that hold for ever.

Owns: the way from an answer "always" to the user's own configuration file (APR-2).
Never: writes for a server whose table a project or another program brought along.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from interlock.vocabulary.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class KeptApprovals:
    """The port Keeper. `files`: by server, where its table stands; `kept` hears of the end: None, or why it failed."""

    files: Mapping[str, str]
    kept: Callable[[str | None], Awaitable[None]]

    def keeps(self, server: str) -> bool:
        return server in self.files

    async def keep(self, server: str, tool: str) -> None:
        from interlock.configuration.editing import set_approval_mode  # here: few hosts ever write a file

        failure: str | None = None
        with anyio.CancelScope(shield=True):  # a write that has begun is seen through
            try:
                await anyio.to_thread.run_sync(set_approval_mode, Path(self.files[server]), server, tool, "approve")
            except InvalidRequest as error:
                failure = f"{error.message}; the approval holds for this session only"
        await self.kept(failure)
