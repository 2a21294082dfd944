"""What is said of the wire: the schema, the reference, the example for a shell."""

import json
import re
from pathlib import Path

import anyio.to_thread
import jsonschema_rs
import pytest

from interlock.surfaces.rpc import reference
from interlock.surfaces.rpc.notifications import NOTIFICATIONS, SERVER_REQUESTS
from interlock.surfaces.rpc.schema import document
from interlock.surfaces.rpc.table import METHODS
from tests.manifest import requirement
from tests.surfaces.rpc.programs import configured
from tests.surfaces.rpc.validation import TABLE

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "app-server.md"


def test_the_reference_names_each_member_of_a_method_once() -> None:
    for entry in reference.reference().split("**`")[1:]:
        named = [line.partition(":")[0] for line in entry.splitlines() if line.startswith("- ")]
        assert sorted(set(named)) == sorted(named)


def test_the_reference_is_that_of_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert reference.rewritten(page) == page, "run: python -m interlock.surfaces.rpc.reference docs/app-server.md"


@requirement("RPC-1")
def test_every_method_and_notification_of_the_wire_in_scope_is_there() -> None:
    assert set(METHODS) == set(TABLE["methods"])
    assert set(NOTIFICATIONS) == set(TABLE["notifications"])
    assert set(SERVER_REQUESTS) == set(TABLE["serverRequests"])


def test_the_printed_schema_is_a_schema() -> None:
    printed = json.loads(json.dumps(document()))
    for kind in ("methods", "notifications", "serverRequests"):
        for entry in printed[kind].values():
            for part in ("params", "result"):
                if part in entry:
                    jsonschema_rs.meta.validate(entry[part])


@pytest.mark.anyio
@requirement("RPC-7")
async def test_a_stranger_drives_a_turn_with_printf_and_reads_what_happened(tmp_path: Path) -> None:
    """The blocks of the page, one after another."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    async with configured(tmp_path) as home:
        output = await anyio.to_thread.run_sync(home.shell, "\n".join(blocks))
    completed, _, read = [json.loads(line) for line in output.splitlines()]
    assert completed["params"]["turn"]["status"] == "completed"
    (turn,) = read["result"]["thread"]["turns"]
    assert [item["type"] for item in turn["items"]] == ["userMessage", "mcpToolCall", "agentMessage"]
    assert turn["items"][0]["content"][0]["text"] == "What is new?"
    assert '"decline"' in turn["items"][1]["result"]["content"][0]["text"]
