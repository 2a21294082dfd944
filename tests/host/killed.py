"""A host that waits in a call until it is killed: python killed.py DATABASE SERVER.json

Prints the id of its Thread once the call's request has reached the server.
"""

import json
import sys
from pathlib import Path

import anyio

from interlock import Host
from interlock.testing import Call, Say, ScriptedModel, scripted_server


async def main(database: Path, folder: Path) -> None:
    reached = folder / "reached"
    hanging = {
        "name": "hang",
        "annotations": {"readOnlyHint": True},
        "do": [{"touch": str(reached)}, {"silence": True}],
    }
    quick = {"name": "quick", "annotations": {"readOnlyHint": True}, "do": [{"text": "quick answer"}]}
    server = scripted_server("a", {"tools": [hanging, quick]}, folder)
    model = ScriptedModel([Call("mcp__a__quick"), Call("mcp__a__hang")], Say("never"))
    async with Host({"a": server}, store=database, model=model, grace=20.0) as host:
        thread = await host.start_thread()
        await thread.start_turn("go")
        while not (reached.exists() and len(thread.state.open_calls) == 1 and len(thread.items) == 3):  # noqa: ASYNC110 -- another process acts
            await anyio.sleep(0.01)
        print(json.dumps({"thread": thread.id, "server": thread.reports()[0].process_id}), flush=True)  # noqa: T201
        await anyio.sleep_forever()


anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]))
