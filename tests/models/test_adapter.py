"""The adapters over a real socket, against the scripted endpoint, in both dialects."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

import anyio
import anyio.abc
import anyio.from_thread
import pytest

import interlock.models
import interlock.models.adapter
from interlock.configuration import ModelConfig, ProviderConfig
from interlock.models.adapter import EndpointModel
from interlock.testing import Break, Call, Gate, Raw, Refuse, Say, ScriptedEndpoint, Wait
from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    EntryCompleted,
    ModelEvent,
    ModelRequest,
    OutputEntry,
    SamplingCompleted,
    TextDelta,
    TextPart,
    Usage,
    UserEntry,
)
from interlock.vocabulary.errors import InvalidRequest, ModelFailed
from interlock.vocabulary.secret import Secret
from tests.manifest import requirement

pytestmark = pytest.mark.anyio
ASK = ModelRequest(entries=(UserEntry(content=(TextPart(text="hello"),)),))
QUICK = {"retry-after-ms": "1"}
Make: TypeAlias = Callable[..., EndpointModel]


@pytest.fixture(params=["responses", "chat"])
def make(request: pytest.FixtureRequest) -> Make:
    """A model at an endpoint, in either dialect; keyword arguments are fields of its ProviderConfig."""

    def made(base_url: str, **settings: Any) -> EndpointModel:
        provider = ProviderConfig(key="test", base_url=base_url, env_key=None, wire_api=request.param)
        settings = {"request_max_retries": 1, "stream_max_retries": 1, **settings}
        return interlock.models.from_configuration(ModelConfig(name="m", provider=replace(provider, **settings)))

    return made


async def sampled(model: EndpointModel, request: ModelRequest = ASK) -> list[ModelEvent]:
    with anyio.fail_after(60):
        async with aclosing(model.sample(request)) as events:  # type: ignore[type-var]  # it is a generator
            return [event async for event in events]


async def failure(model: EndpointModel) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await sampled(model)
    return caught.value


async def test_text_calls_and_usage_arrive_in_order(make: Make) -> None:
    async with ScriptedEndpoint([Say("hello", piece=3), Call("a", {"n": 1}), Call("b")]) as endpoint:
        events = await sampled(make(endpoint.base_url))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["hel", "lo"]
    assert [event.entry for event in events if isinstance(event, EntryCompleted)] == [
        AssistantEntry(text="hello"),
        CallEntry(call_id="call-1", name="a", arguments='{"n": 1}'),
        CallEntry(call_id="call-2", name="b", arguments="{}"),
    ]
    assert isinstance(events[-1], SamplingCompleted)
    assert events[-1].usage == Usage(input_tokens=10, output_tokens=5)


@requirement("LIF-8")
async def test_calls_of_an_endpoint_that_names_them_all_alike_are_told_apart(make: Make) -> None:
    before = (CallEntry(call_id="0", name="a", arguments="{}"), OutputEntry(call_id="0", content=()))
    request = ModelRequest(entries=(*ASK.entries, *before))
    alike = [Call("a", call_id="0"), Call("b", call_id="0"), Call("c", call_id="new"), Call("d", call_id="new")]
    async with ScriptedEndpoint(alike) as endpoint:
        events = await sampled(make(endpoint.base_url), request)
    calls = [event.entry for event in events if isinstance(event, EntryCompleted)]
    ids = [call.call_id for call in calls if isinstance(call, CallEntry)]
    assert [call.name for call in calls if isinstance(call, CallEntry)] == ["a", "b", "c", "d"]
    assert len({"0", *ids}) == 5
    assert ids[2] == "new"  # an id that nobody has used stays as it is


async def test_an_endpoint_that_counts_no_tokens_is_fine(make: Make) -> None:
    async with ScriptedEndpoint(Say("hi"), usage=None) as endpoint:
        last = (await sampled(make(endpoint.base_url)))[-1]
    assert isinstance(last, SamplingCompleted)
    assert last.usage is None


async def test_text_is_passed_on_while_the_answer_is_being_written(make: Make) -> None:
    gate = Gate("rest of the answer")
    async with (
        ScriptedEndpoint([Say("first"), Wait(gate), Say("second")]) as endpoint,
        aclosing(make(endpoint.base_url).sample(ASK)) as events,  # type: ignore[type-var]  # it is a generator
    ):
        with anyio.fail_after(60):
            assert await anext(events) == TextDelta(text="first")
            gate.open()
            rest = [event async for event in events]
    assert isinstance(rest[-1], SamplingCompleted)


async def test_the_key_and_headers_of_the_provider_are_sent_and_none_where_there_is_none(make: Make) -> None:
    async with ScriptedEndpoint(Say("a"), Say("b")) as endpoint:
        headers = {"X-Team": Secret("blue")}
        keyed = make(endpoint.base_url, bearer_token=Secret("sk-1"), http_headers=headers, query_params={"v": "1"})
        await sampled(keyed)
        await sampled(make(endpoint.base_url))
    first, second = endpoint.requests
    assert first.headers["authorization"] == "Bearer sk-1"
    assert first.headers["x-team"] == "blue"
    assert "authorization" not in second.headers


async def test_ids_of_an_openai_organisation_go_to_openai_only(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    async with ScriptedEndpoint(Say("a")) as endpoint:
        await sampled(make(endpoint.base_url))
    assert "openai-organization" not in endpoint.requests[0].headers
    assert "authorization" not in endpoint.requests[0].headers


async def test_a_missing_key_names_its_variable(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    error = await failure(make("http://127.0.0.1:9/v1", env_key="MY_KEY"))
    assert "the environment variable MY_KEY is not set" in error.message
    assert error.facts["kind"] == "key"


async def test_a_refused_key_says_where_it_came_from_and_not_what_it_is(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-value")
    async with ScriptedEndpoint(Refuse(401, "wrong key sk-secret-value")) as endpoint:
        error = await failure(make(endpoint.base_url, env_key="MY_KEY"))
    assert "refused the key from environment variable MY_KEY (status 401): wrong key ********" in error.message
    assert "sk-secret-value" not in repr(error) + str(error.facts)


async def test_a_refused_request_repeats_the_providers_words_once_and_is_not_sent_again(make: Make) -> None:
    async with ScriptedEndpoint(Refuse(400, "tool names are too long")) as endpoint:
        error = await failure(make(endpoint.base_url))
    assert error.message.endswith("refused the request for model m (status 400): tool names are too long")
    assert error.facts["status"] == 400
    assert len(endpoint.requests) == 1


async def test_an_unknown_model_points_at_model_and_base_url(make: Make) -> None:
    async with ScriptedEndpoint(Refuse(404, "no such model")) as endpoint:
        error = await failure(make(endpoint.base_url))
    assert "check model and base_url" in error.message


async def test_a_rate_limit_is_waited_for_as_the_endpoint_says_and_then_reported(make: Make) -> None:
    slow = Refuse(429, "slow down", headers=QUICK)
    async with ScriptedEndpoint(slow, Say("now"), slow, slow) as endpoint:
        model = make(endpoint.base_url)
        assert isinstance((await sampled(model))[-1], SamplingCompleted)
        error = await failure(model)
    assert error.facts["kind"] == "limited"
    assert "limits requests (status 429): slow down" in error.message
    assert len(endpoint.requests) == 4


async def test_an_endpoint_that_nobody_runs_is_named_with_the_reason(make: Make) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        error = await failure(make(f"http://user:pass@127.0.0.1:{port}/v1", request_max_retries=0))
    assert f"cannot reach the model endpoint http://127.0.0.1:{port}/v1: Connection refused; " in error.message
    assert "check base_url" in error.message
    assert "pass@" not in error.message


async def test_a_stream_that_breaks_before_anything_was_said_is_asked_again(make: Make) -> None:
    async with ScriptedEndpoint(Break(), Say("whole")) as endpoint:
        events = await sampled(make(endpoint.base_url))
    assert EntryCompleted(entry=AssistantEntry(text="whole")) in events
    assert len(endpoint.requests) == 2


async def test_streams_that_keep_breaking_are_given_up(make: Make) -> None:
    async with ScriptedEndpoint(Break(), Break(), Say("too late")) as endpoint:
        error = await failure(make(endpoint.base_url))
    assert "broke off before it was complete" in error.message
    assert endpoint.remaining == 1


async def test_a_stream_that_breaks_after_something_was_said_is_never_repeated(make: Make) -> None:
    async with ScriptedEndpoint([Say("so far"), Break()], Say("again")) as endpoint:
        error = await failure(make(endpoint.base_url))
    assert error.facts["kind"] == "broken"
    assert endpoint.remaining == 1


async def test_a_stream_that_ends_without_its_last_event_is_broken(make: Make) -> None:
    async with ScriptedEndpoint([Say("so far"), Raw("")]) as endpoint:
        error = await failure(make(endpoint.base_url))
    assert error.facts["kind"] == "broken"


async def test_an_endpoint_that_falls_silent_is_left_within_the_idle_time(make: Make) -> None:
    async with ScriptedEndpoint([Say("so far"), Wait(Gate("silence"))]) as endpoint:
        error = await failure(make(endpoint.base_url, stream_idle_timeout=0.2))
    assert "said nothing for 0.2 s" in error.message


async def test_a_page_instead_of_a_stream_points_at_the_base_url(make: Make) -> None:
    page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi"

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(page)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listener = await anyio.abc.SocketListener.from_socket(taken)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, serve)
            error = await failure(make(f"http://127.0.0.1:{port}"))
            tasks.cancel_scope.cancel()
    assert "text/html instead of an event stream" in error.message
    assert "/v1" in error.message


@pytest.mark.parametrize(
    "text",
    ["data: {nonsense\n\n", "data: [1]\n\n", 'data: {"choices": 7, "type": "response.completed", "response": 7}\n\n'],
)
async def test_events_that_are_nonsense_fail_the_sampling_and_nothing_else(make: Make, text: str) -> None:
    async with ScriptedEndpoint(Raw(text), Say("fine")) as endpoint:
        model = make(endpoint.base_url, stream_max_retries=0)
        error = await failure_or_none(model)
        assert error is None or error.facts["kind"] in {"nonsense", "broken"}
        assert isinstance((await sampled(model))[-1], SamplingCompleted)


async def failure_or_none(model: EndpointModel) -> ModelFailed | None:
    try:
        await sampled(model)
    except ModelFailed as error:
        return error
    return None


async def test_an_error_object_in_the_stream_is_reported_in_the_providers_words(make: Make) -> None:
    text = 'data: {"type": "error", "error": {"code": "invalid_prompt", "message": "not like this"}}\n\n'
    async with ScriptedEndpoint(Raw(text)) as endpoint:
        error = await failure(make(endpoint.base_url))
    assert "failed while it answered: invalid_prompt: not like this" in error.message


async def test_an_answer_beyond_the_bound_is_given_up(make: Make) -> None:
    async with ScriptedEndpoint(Say("x" * 5000, piece=100)) as endpoint:
        base = make(endpoint.base_url)
        model = EndpointModel("m", base._provider, media=(), output_limit=4000)
        error = await failure(model)
    assert "larger than 4000 bytes" in error.message


async def test_an_option_that_the_model_refuses_is_left_out_at_the_second_try() -> None:
    refusal = Refuse(400, "Encrypted content is not supported with this model.")
    async with ScriptedEndpoint(refusal, Say("fine")) as endpoint:
        await sampled(interlock.models.responses("m", base_url=endpoint.base_url))
    assert ["include" in request.body for request in endpoint.requests] == [True, False]


async def test_an_entered_model_keeps_one_client_and_closes_it(make: Make) -> None:
    async with ScriptedEndpoint(Say("a"), Say("b"), Say("c")) as endpoint:
        model = make(endpoint.base_url)
        async with model:
            await sampled(model)
            endpoint_kept = model._endpoint
            await sampled(model)
            assert endpoint_kept is not None
            assert model._endpoint is endpoint_kept
        assert endpoint_kept.closed
        await sampled(model)


async def test_a_sampling_that_is_given_up_in_the_middle_leaves_the_endpoint_free(make: Make) -> None:
    gate = Gate("rest")
    async with ScriptedEndpoint([Say("first"), Wait(gate)], Say("next")) as endpoint:
        model = make(endpoint.base_url)
        with anyio.move_on_after(10) as scope:
            async for _ in model.sample(ASK):
                scope.cancel()
        assert scope.cancelled_caught
        assert isinstance((await sampled(model))[-1], SamplingCompleted)


async def test_a_model_that_is_entered_has_its_package_loaded_before_it_is_asked(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    load = interlock.models.adapter._load_endpoint
    monkeypatch.setattr("interlock.models.adapter._load_endpoint", lambda: (loaded.append("once"), load())[1])
    async with make("http://127.0.0.1:9/v1"):
        assert loaded == ["once"]


async def test_what_keeps_the_package_from_loading_is_told_when_the_model_is_asked(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> NoReturn:
        raise ImportError("it is half installed")

    monkeypatch.setattr("interlock.models.adapter._load_endpoint", load)
    model = make("http://127.0.0.1:9/v1")
    await model.prepare_sampling()
    with pytest.raises(ImportError, match="half installed"):
        await sampled(model)


async def test_a_sampling_that_is_given_up_does_not_wait_for_a_package_to_load(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, loading, loaded = make("http://127.0.0.1:9/v1"), anyio.Event(), threading.Event()
    given_up: list[bool] = []

    def load() -> NoReturn:
        anyio.from_thread.run_sync(loading.set)
        given_up.append(not loaded.wait(20))
        raise ImportError

    async def sample() -> None:
        with suppress(ModelFailed, ImportError):
            await sampled(model)

    monkeypatch.setattr("interlock.models.adapter._load_endpoint", load)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sample)
            await loading.wait()
            tasks.cancel_scope.cancel()
        assert given_up == []  # it still loads, and nobody waits for it any more
    finally:
        loaded.set()


@pytest.mark.parametrize(
    "address",
    ["", "localhost:11434", "ftp://localhost/v1", "http://", "http://localhost:99999", "http://[::1", "http://a b"],
)
def test_an_address_that_is_none_is_refused_before_anything_is_sent(address: str) -> None:
    with pytest.raises(InvalidRequest, match="is not an http or https address"):
        interlock.models.chat("m", base_url=address)


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines"])
async def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    model = interlock.models.chat("m", base_url="http://127.0.0.1:9/v1", api_key=key)
    error = await failure(model)
    assert "the value from argument api_key holds characters" in error.message
    assert key not in error.message


def test_a_configuration_without_a_model_is_refused_with_the_line_to_write() -> None:
    with pytest.raises(InvalidRequest, match="write model = "):
        interlock.models.from_configuration(ModelConfig())


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(InvalidRequest, match=r"pip install 'interlock\[openai\]'"):
        interlock.models.chat("m")


def test_a_model_shows_itself_without_its_key() -> None:
    model = interlock.models.chat("m", base_url="http://me:pw@localhost/v1/", api_key="sk-secret")
    assert repr(model) == "<EndpointModel 'm' at http://localhost/v1 over chat>"
    assert (model.name, model.provider) == ("m", "openai-chat")


def test_importing_the_package_and_making_a_model_load_no_client() -> None:
    code = "import sys, interlock.models as m; m.responses('x'); print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
