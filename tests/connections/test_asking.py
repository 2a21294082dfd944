"""How a server is asked: what is told when the one deadline of a whole listing is spent."""

import anyio
import pytest

from interlock.connections.asking import Asker
from interlock.connections.connection import RESOURCES, TOOLS
from interlock.connections.session import SessionHandlers
from interlock.connections.supervisor import Supervisor
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from tests.clock import let_pass
from tests.connections.fakes import PATIENCE, TOOL, FakeServer, FakeSession, config, until
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


@requirement("CAT-1")
@pytest.mark.parametrize("listed", [TOOLS["handshake"], RESOURCES], ids=lambda listed: listed.method)
async def test_a_listing_has_one_deadline_for_all_its_pages_and_none_of_them_is_used_beyond_it(listed: object) -> None:
    def three_pages_and_then_silence(session: FakeSession, method: str, params: JsonObject) -> JsonObject:
        page = int(params.get("cursor", "1"))
        if page == 3:
            server.hold(method)
        return {"tools": [TOOL], "resources": [{"uri": "zoo://a", "name": "a"}], "nextCursor": str(page + 1)}

    async def time_passes_in_the_silence() -> None:
        await until(lambda: any(arrival.is_set() for arrival in server.arrivals.values()))
        let_pass(PATIENCE / 2)

    server = FakeServer(answer=three_pages_and_then_silence)
    supervisor = Supervisor(config(), handlers=SessionHandlers(), opener=server)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            await supervisor.ready_session(PATIENCE)
            tasks.start_soon(time_passes_in_the_silence)
            with pytest.raises(ServerFailed, match="its time was over after 3 pages, none of which is used") as failed:
                await Asker(supervisor).walk(listed, deadline=anyio.current_time() + PATIENCE / 2)  # type: ignore[arg-type] # of two kinds
            supervisor.close()
    assert (failed.value.kind, failed.value.effect) == ("deadline", "none")
    assert len(server.sessions[0].asked) == 4
