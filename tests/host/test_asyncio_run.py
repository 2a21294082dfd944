"""A host under plain asyncio.run: nothing may depend on variables that only anyio.run sets."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.manifest import requirement

PROGRAM = """
import asyncio, json, sys
from pathlib import Path
import sniffio  # other packages bring it; with it installed, anyio asks it for the running library
from interlock import Host
from interlock.testing import scripted_server

async def main(era: str, folder: Path) -> None:
    tools = [{"name": "grow", "annotations": {"readOnlyHint": True}}, {"name": "new"}]
    grow = [{"set": {"tools": tools}}, {"notify": {"method": "notifications/tools/list_changed"}}]
    script = {"eras": [era], "tools": [{**tools[0], "do": grow}]}
    server = scripted_server("plant", script, folder, required=True)
    async with Host({"plant": server}, store=folder / "store.db") as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            await step.call("c1", "mcp__plant__grow", {})
        for _ in range(200):  # bounded; each round is a Step, as an agent would take it
            async with thread.step() as step:
                names = [tool.name for tool in step.tools]
            if "mcp__plant__new" in names:
                break
            await asyncio.sleep(0.05)
        print(json.dumps({"names": names, "diagnostics": [d.kind for r in thread.reports() for d in r.diagnostics]}))

asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
"""


@requirement("CON-14")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_a_changed_tool_list_is_noticed_under_asyncio_run(era: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, era, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin", "INTERLOCK_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert "mcp__plant__new" in seen["names"]
    assert seen["diagnostics"] == []
