import json
from typing import Any

import aiohttp
import pytest

from interlock.testing import Break, Call, Gate, Raw, Refuse, Say, ScriptedEndpoint, Wait

pytestmark = pytest.mark.anyio


async def ask(endpoint: ScriptedEndpoint, path: str, **body: Any) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(endpoint.base_url + path, json={"model": "m", "stream": True, **body}) as response,
    ):
        return response.status, await response.text()


def data_of(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


async def test_the_responses_dialect_streams_items_and_repeats_them_when_it_completes() -> None:
    async with ScriptedEndpoint([Say("hello", piece=3), Call("look", {"at": 1})]) as endpoint:
        status, text = await ask(endpoint, "/responses", input=[])
    events = data_of(text)
    assert status == 200
    assert [event["delta"] for event in events if event["type"] == "response.output_text.delta"] == ["hel", "lo"]
    completed = events[-1]["response"]
    assert [item["type"] for item in completed["output"]] == ["message", "function_call"]
    assert completed["output"][1] | {"id": ""} == {
        "type": "function_call",
        "id": "",
        "call_id": "call-1",
        "name": "look",
        "arguments": '{"at": 1}',
        "status": "completed",
    }
    assert completed["usage"]["total_tokens"] == 15


async def test_the_chat_dialect_streams_deltas_and_says_why_it_finished() -> None:
    async with ScriptedEndpoint([Say("hi"), Call("a"), Call("b")], Say("done"), usage=None) as endpoint:
        _, with_calls = await ask(endpoint, "/chat/completions")
        _, plain = await ask(endpoint, "/chat/completions")
    choices = [chunk["choices"][0] for chunk in data_of(with_calls)]
    assert choices[-1]["finish_reason"] == "tool_calls"
    ids = [call["id"] for c in choices for call in c["delta"].get("tool_calls", []) if "id" in call]
    assert ids == ["call-1", "call-2"]
    assert data_of(plain)[-1]["choices"][0]["finish_reason"] == "stop"


async def test_requests_are_recorded_and_can_decide_the_answer() -> None:
    async with ScriptedEndpoint(lambda request: Say(request.body["note"])) as endpoint:
        _, text = await ask(endpoint, "/responses", note="from the body")
        assert endpoint.requests[0].path == "/v1/responses"
        assert endpoint.requests[0].headers["content-type"] == "application/json"
        assert endpoint.remaining == 0
    assert "from the body" in text


async def test_a_refusal_has_its_status_and_message_and_so_has_the_end_of_the_script() -> None:
    async with ScriptedEndpoint(Refuse(429, "slow down", headers={"retry-after": "0"})) as endpoint:
        assert await ask(endpoint, "/responses") == (
            429,
            '{"error": {"message": "slow down", "type": "scripted", "param": null, "code": null}}',
        )
        status, text = await ask(endpoint, "/responses")
    assert status == 400
    assert "no answer left after 1" in text


@pytest.mark.parametrize("path", ["/responses", "/chat/completions"])
async def test_a_break_delivers_what_was_said_and_then_cuts_the_stream(path: str) -> None:
    async with (
        ScriptedEndpoint([Say("so far"), Break()]) as endpoint,
        aiohttp.ClientSession() as session,
        session.post(endpoint.base_url + path, json={"model": "m"}) as response,
    ):
        await response.content.readuntil(b"so far")
        with pytest.raises(aiohttp.ClientError):
            await response.content.read()


async def test_raw_text_goes_out_as_it_is_without_the_usual_end() -> None:
    async with ScriptedEndpoint(Raw("data: nonsense\n\n")) as endpoint:
        _, text = await ask(endpoint, "/chat/completions")
    assert text.endswith("data: nonsense\n\n")


async def test_leaving_the_endpoint_ends_a_request_that_waits_for_a_gate() -> None:
    gate = Gate("never opened")
    async with aiohttp.ClientSession() as session:
        async with ScriptedEndpoint(Wait(gate)) as endpoint:
            response = await session.post(endpoint.base_url + "/responses", json={"model": "m"})
            await gate.reached()
        with pytest.raises(aiohttp.ClientError):
            await response.read()
