"""The app server as a whole.

Owns: the order of opening and closing: the Host, the threads that are followed, the listener.
Never: ends before every connection has ended.
"""

import anyio

from interlock.host.host import Host
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.leftovers import forget_left_behind
from interlock.surfaces.rpc.listening import Listening, listen
from interlock.surfaces.rpc.serving import AppServer
from interlock.surfaces.rpc.table import METHODS
from interlock.vocabulary.errors import InvalidRequest


async def serve(host: Host, listening: Listening, *, home: str) -> None:
    """Serve an open `host` until the standard streams end, or until cancelled. `home` is told to clients.

    Raises:
        InvalidRequest: it cannot be listened there.
    """
    refusal: InvalidRequest | None = None
    async with anyio.create_task_group() as tasks:
        try:
            application = Application(host, tasks, home=home)
            tasks.start_soon(forget_left_behind, application)
            await listen(AppServer(application, METHODS), listening)
        except InvalidRequest as error:
            refusal = error  # raised below, where no group is made of it
        tasks.cancel_scope.cancel()
    if refusal is not None:
        raise refusal
