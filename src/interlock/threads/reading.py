"""What an application reads of a Thread's servers for an app that it shows.

Owns: the way from a call of the past to a read over today's connection (ORI-4, ORI-5).
Never: makes an item or an entry, or reads before every check has passed on the newest catalogue and policy.
"""

from interlock.origins import read
from interlock.origins.authorise import authorise, recall
from interlock.origins.store import Origins
from interlock.threads.servers import Servers
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.resource import ResourceRead


async def read_for_call(
    servers: Servers, origins: Origins, thread_id: str, *, call_id: str, server: str, uri: str
) -> ResourceRead:
    """Read `uri` because the completed call `call_id` gave it to an app.

    A server that is still starting is waited for, within its start-up deadline.

    Raises:
        NotPermitted: a check refused it; `facts["reason"]` says which.
        ServerFailed: the server did not give it.
    """
    recall(origins.find(call_id), call_id=call_id, server=server, uri=uri)
    async with servers.leased_for(server) as leased:
        view = leased.servers.get(server)
        if view is not None:
            await view.connection.ready(view.config.startup_timeout)
        # Nothing is awaited between these checks and the request: what they saw still holds when it goes out.
        origin = authorise(origins.find(call_id), call_id=call_id, server=server, uri=uri, today=servers.snapshot)
        if view is None:  # it came while we waited; its connection is not held here
            raise NotPermitted(
                f"server {server!r} was not there when the read began; read again", reason="tool_unavailable"
            )
        return await read.read_for_origin(view, origin, thread_id)
