"""What one client can do to the server and to others: nothing (RPC-6)."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock import Host
from interlock.surfaces.rpc.serving import Limits
from interlock.surfaces.rpc.table import METHODS
from interlock.surfaces.rpc.transport import FRAME_LIMIT, TooLong
from interlock.testing import Gate, Say, ScriptedModel, Wait
from tests.manifest import requirement
from tests.surfaces.rpc.conftest import Serve
from tests.surfaces.rpc.driver import Driver, Refused, app_server

pytestmark = pytest.mark.anyio


async def ended(client: Driver) -> Any:
    with anyio.fail_after(60):
        while client.transport.closed is False:
            await client.transport.news.wait()
    return client.transport.closed


@requirement("RPC-6")
async def test_a_slow_reader_is_told_and_dropped_and_the_others_hear_everything(serve: Serve) -> None:
    turns = 4
    model = ScriptedModel(*[Say("x" * 400, piece=1) for _ in range(turns)])
    async with serve(model=model, limits=Limits(backlog_frames=1000)) as desk:
        slow, fast = await desk.connect(), await desk.connect()
        thread_id = (await fast.request("thread/start"))["thread"]["id"]
        await slow.request("thread/resume", threadId=thread_id)
        slow.transport.readable = anyio.Event()
        for _ in range(turns):
            turn = await fast.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
            await fast.completion(turn["turn"]["id"])
        deltas = [m["params"]["delta"] for m in fast.hear() if m.get("method") == "item/agentMessage/delta"]
        assert "".join(deltas) == "x" * 400 * turns
        slow.transport.readable.set()
        reason = await ended(slow)
        assert "too much waited" in reason
        assert slow.hear()[-1]["method"] == "warning"
        assert slow.messages[-1]["params"]["message"] == reason
        await fast.request("model/list")


@requirement("RPC-6")
async def test_a_flood_of_requests_is_answered_request_by_request(serve: Serve, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = {"resources": [{"uri": "s://one", "name": "one", "text": "x", "do": [{"wait_for_file": str(gate)}]}]}
    async with serve({"s": slow}, limits=Limits(own_requests=3)) as desk:
        client, other = await desk.connect(), await desk.connect()
        read = {"server": "s", "uri": "s://one"}
        waiting = [client.begin("mcpServer/resource/read", read) for _ in range(10)]
        await other.request("model/list")
        refused = []
        for identity in waiting[3:]:
            with pytest.raises(Refused, match="overloaded") as error:
                await client.answer_to(identity)
            refused.append(error.value.code)
        assert set(refused) == {-32001}
        gate.touch()
        for identity in waiting[:3]:
            assert (await client.answer_to(identity))["contents"][0]["text"] == "x"


@requirement("RPC-6")
async def test_all_connections_together_are_bounded_too(serve: Serve, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = {"resources": [{"uri": "s://one", "name": "one", "text": "x", "do": [{"wait_for_file": str(gate)}]}]}
    async with serve({"s": slow}, limits=Limits(requests=1)) as desk:
        client, other = await desk.connect(), await desk.connect()
        waiting = client.begin("mcpServer/resource/read", {"server": "s", "uri": "s://one"})
        await client.request("model/list")
        with pytest.raises(Refused, match="overloaded"):
            await other.request("thread/list")
        gate.touch()
        await client.answer_to(waiting)
        assert (await other.request("thread/list"))["data"] == []


@requirement("RPC-6")
async def test_a_frame_that_is_too_long_is_refused_and_the_conversation_goes_on(serve: Serve) -> None:
    async with serve() as desk:
        client = await desk.connect()
        client.transport.to_server.send_nowait(TooLong(b'{"id":"big","method":"turn/start","params":{"input":"'))
        refused = await client.until(lambda m: m.get("id") == "big")
        assert str(FRAME_LIMIT) in refused["error"]["message"]
        await client.request("model/list")


@requirement("RPC-6")
async def test_a_batch_is_answered_in_one(serve: Serve) -> None:
    async with serve() as desk:
        client = await desk.connect()
        client.send([{"id": "a", "method": "model/list"}, {"id": "b", "method": "nope"}, {"method": "x"}, 7])
        with anyio.fail_after(60):
            while not (batches := [json.loads(f) for f in client.transport.sent if f.startswith(b"[")]):
                await client.transport.news.wait()
        (batch,) = batches
        assert sorted(str(answer["id"]) for answer in batch) == ["None", "a", "b"]


async def test_a_client_that_goes_away_takes_its_requests_along(serve: Serve, tmp_path: Path) -> None:
    trace, gate = tmp_path / "trace", tmp_path / "gate"
    resource = {"uri": "s://one", "name": "one", "text": "x", "do": [{"touch": str(gate)}, {"silence": True}]}
    script = {"eras": ["handshake"], "resources": [resource], "trace": str(trace)}
    async with serve({"s": script}) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        client.begin("mcpServer/resource/read", {"server": "s", "uri": "s://one", "threadId": thread_id})
        with anyio.fail_after(60):
            while not gate.exists():  # noqa: ASYNC110 -- another process makes it
                await anyio.sleep(0.01)
        client.end()
        with anyio.fail_after(60):
            while b"notifications/cancelled" not in trace.read_bytes():  # noqa: ASYNC110 -- the same
                await anyio.sleep(0.01)


async def test_a_turn_goes_on_without_its_client(serve: Serve) -> None:
    gate = Gate()
    async with serve(model=ScriptedModel([Wait(gate), Say("done")])) as desk:
        client, other = await desk.connect(), await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        await client.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        client.end()
        await ended(client)
        await other.request("thread/resume", threadId=thread_id)
        gate.open()
        completed = await other.news("turn/completed")
        assert completed["turn"]["status"] == "completed"


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 2**40, "", "x", "THREAD", True, [], {}, [{"type": "text", "text": "hi"}]]
)
NAMES = sorted(
    {field.alias or name for method in METHODS.values() for name, field in method.params.model_fields.items()}
)
REQUESTS = st.fixed_dictionaries(
    {"id": st.integers(0, 3) | st.sampled_from(["a", None, 1.5]), "method": st.sampled_from([*METHODS, "nope", 5])},
    optional={"params": st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4) | VALUES},
)


@requirement("RPC-6")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(REQUESTS, min_size=1, max_size=12))
def test_every_request_is_answered_once_whatever_it_says(requests: list[dict[str, Any]]) -> None:
    async def main(folder: str) -> list[Any]:
        model = ScriptedModel(*[Say("x")] * 50)
        async with Host({}, store=Path(folder) / "interlock.db", model=model) as host, app_server(host) as desk:
            client = await desk.connect(half_closes=True)
            thread_id = (await client.request("thread/start"))["thread"]["id"]
            start = len(client.transport.sent)
            for request in requests:
                client.send_raw(json.dumps(request).replace('"THREAD"', json.dumps(thread_id)).encode())
            client.end()
            await ended(client)
            return [json.loads(frame) for frame in client.transport.sent[start:]]

    with TemporaryDirectory() as folder:
        messages = anyio.run(main, folder)
    answers = [message["id"] for message in messages if "method" not in message]
    asked = [request["id"] if isinstance(request["id"], int | str) else None for request in requests]
    assert sorted(map(repr, answers)) == sorted(map(repr, asked))
