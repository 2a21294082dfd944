"""Our dispatcher, as the SDK's ClientSession wants to see one.

Owns: the translation between `mcp.shared.dispatcher.Dispatcher` and ours, and the repair of what a server answers to
    initialize before the SDK's strict models see it.
Never: imported before a session is negotiated: the SDK costs most of a second, which passes in a worker thread while
    the server starts.
"""

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.abc
import mcp_types
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from interlock.connections.dispatcher import Dispatcher
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject

__all__ = ["HANDSHAKE_PROTOCOL_VERSIONS", "MODERN_PROTOCOL_VERSIONS", "SdkDispatcher", "client_session"]


class SdkDispatcher:
    """Implements the SDK's Dispatcher Protocol for negotiation.

    `seconds` gives the time that a request may take. `stamp` changes the parameters of a request
    before it is sent (capabilities and version as the host wants them, not as the SDK derives them);
    `check` gets every raw result, and returns what the SDK shall see of it.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        seconds: Callable[[], float],
        stamp: Callable[[str, JsonObject], JsonObject],
        check: Callable[[str, JsonObject], dict[str, Any]],
    ) -> None:
        self._dispatcher = dispatcher
        self._seconds = seconds
        self._stamp = stamp
        self._check = check

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """MCPError when the server rejects it. What fails here stays a ServerFailed: our errors never look like the
        peer's."""
        options = opts or {}
        try:
            result = await self._dispatcher.request(
                method,
                self._stamp(method, params or {}),
                timeout=self._seconds(),
                headers=options.get("headers"),
                cancellable=options.get("cancel_on_abandon", True),
            )
        except ServerFailed as error:
            if error.kind != "rejected":
                raise
            code = 0 if error.rpc_code is None else error.rpc_code
            raise MCPError(code, error.facts["rpc_message"], error.rpc_data) from error
        return self._check(method, result)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        with anyio.move_on_after(self._seconds()):
            await self._dispatcher.notify(method, params, headers=(opts or {}).get("headers"))

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Wait for the end. Notifications and requests of the server are our dispatcher's business, not the SDK's."""
        task_status.started()
        await self._dispatcher.over.wait()


def client_session(dispatcher: SdkDispatcher, version: str) -> ClientSession:
    """An SDK session that speaks through our dispatcher. It is never entered: `run` would have nothing to do."""
    return ClientSession(dispatcher=dispatcher, client_info=mcp_types.Implementation(name="interlock", version=version))
