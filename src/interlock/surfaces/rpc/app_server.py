"""The app server as a whole.

Owns: the order of opening and closing: the Host, the threads that are followed, the listener.
Never: ends before every connection has ended.
"""

import anyio

from interlock.host.host import Host
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.listening import Listening, listen
from interlock.surfaces.rpc.serving import AppServer
from interlock.surfaces.rpc.table import METHODS


async def serve(host: Host, listening: Listening, *, home: str) -> None:
    """Serve an open `host` until the standard streams end, or until cancelled. `home` is told to clients.

    Raises:
        InvalidRequest: it cannot be listened there.
    """
    async with anyio.create_task_group() as tasks:
        await listen(AppServer(Application(host, tasks, home=home), METHODS), listening)
        tasks.cancel_scope.cancel()
