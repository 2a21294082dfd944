"""Recorded conversations led again: the client's side against our server, the servers as they were.

Compared are answers, errors and their codes, items and questions; what differs on purpose is listed with its reason.
"""

import json
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Host, Policy, ServerConfig, StdioTransport
from interlock.testing import Call, Say, ScriptedModel
from tests.manifest import requirement
from tests.surfaces.rpc.driver import Driver, Message, Refused, app_server

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent / "recorded"
PLAYER = Path(__file__).parent / "recorded_server.py"

CHECKED_CONTENT = {
    '{"action": "accept"}': "an answer without content does not fill a form that requires a field",
    '{"action": "accept", "content": null}': "the same",
    '{"action": "accept", "content": {"unknown": [1, {"x": 2}]}}': "a member that is no field does not fit the form",
}
"""Accepted forms that the recorded program passed on as they were; here they are a decline (BEHAVIOUR section 1)."""
WITHOUT_FIELDS = {"empty", "url"}
"""Tools that ask for nothing but a yes: content that comes with it is left out here."""
UNDESCRIBED = "sch_nullreq"
"""Its form requires a field that it does not describe; the recorded program filled it in with nothing (QST-3)."""


MODES: dict[str, dict[str, Any]] = {
    "f_prompt": {"pt_auto": "auto", "pt_prompt": "prompt", "pt_approve": "approve"},
}
"""approval_mode of single tools, where the recorded configuration had any."""


def lines(name: str) -> list[Message]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def servers(name: str, **settings: Any) -> dict[str, ServerConfig]:
    """One for each recorded server, and one that cannot start."""
    recorded = [path.stem.partition("__")[2] for path in FOLDER.glob(f"{name}__*.jsonl")]
    configs = {
        server: ServerConfig(
            name=server,
            transport=StdioTransport(
                command=sys.executable, args=(str(PLAYER), str(FOLDER / f"{name}__{server}.jsonl"))
            ),
            protocol="2025-06-18",
            **settings,
        )
        for server in recorded
    }
    down = ServerConfig(name="down", transport=StdioTransport(command="/nowhere/at-all"), restart="never")
    return {**configs, "down": down}


@asynccontextmanager
async def client(
    folder: Path, configs: dict[str, ServerConfig], model: ScriptedModel | None = None, **policy: Any
) -> AsyncIterator[Driver]:
    host = Host(configs, store=folder / "interlock.db", model=model, policy=Policy(**policy), grace=30.0)
    async with host as opened, app_server(opened) as desk:
        yield await desk.connect()


# ---- requests of the application


def comparable(result: Any) -> Any:
    """Without what only the two programs' own numbering makes different."""
    if isinstance(result, dict) and set(result) == {"type", "text"} and result["text"].startswith("{"):
        said = json.loads(result["text"])
        meta = said.get("_meta") or {}
        kept = {name: value for name, value in meta.items() if name not in ("progressToken", "threadId")}
        return {"text": {**{name: value for name, value in said.items() if name != "_meta"}, "_meta": kept}}
    if isinstance(result, dict):
        return {name: comparable(value) for name, value in result.items()}
    if isinstance(result, list):
        return [comparable(value) for value in result]
    return result


@requirement("RPC-2", "RPC-3", "RPC-4")
@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("e_resource_read", "mcpServer/resource/read"),
        ("e_tool_call", "mcpServer/tool/call"),
    ],
)
async def test_direct_requests_are_answered_as_they_were(tmp_path: Path, name: str, method: str) -> None:
    recorded = lines(name)
    heard = [line["msg"] for line in recorded if line["dir"] == "s2c"]
    answers = {message["id"]: message for message in heard if "id" in message and "method" not in message}
    settings: dict[str, Any] = {"disabled_tools": ("off",)} if name == "e_tool_call" else {}
    async with client(tmp_path, servers(name, **settings)) as driver:
        ours = (await driver.request("thread/start"))["thread"]["id"]
        threads = {a["result"]["thread"]["id"]: ours for a in answers.values() if "thread" in (a.get("result") or {})}
        compared = 0
        for request in [m["msg"] for m in recorded if m["msg"].get("method") == method]:
            answer = answers.get(request["id"])
            # Left out: what was not recorded whole, echoes of metadata (another program's), and its own server.
            if answer is None or "echo" in str(request) or request["params"].get("server") == "codex_apps":
                continue
            params = dict(request["params"])
            params["threadId"] = threads.get(params.get("threadId"), params.get("threadId"))
            compared += 1
            given = {name: value for name, value in params.items() if value is not None}
            assert await outcome(driver, method, given) == expected_outcome(answer), request
        assert compared >= 10


async def outcome(driver: Driver, method: str, params: Message) -> Any:
    """The result, or the code of the error."""
    try:
        return comparable(await driver.request(method, **params))
    except Refused as refused:
        return refused.code


def expected_outcome(answer: Message) -> Any:
    return answer["error"]["code"] if "error" in answer else comparable(answer["result"])


# ---- turns


def turns_of(recorded: list[Message]) -> list[tuple[list[Message], list[Message]]]:
    """For each recorded turn its ended calls, and the questions with the answers that the client gave."""
    found: list[tuple[list[Message], list[Message]]] = []
    questions: dict[Any, Message] = {}
    for line in recorded:
        message = line["msg"]
        method, params = message.get("method"), message.get("params") or {}
        if method == "turn/started":
            found.append(([], []))
        elif method == "item/completed" and params["item"]["type"] == "mcpToolCall":
            found[-1][0].append(params["item"])
        elif method == "mcpServer/elicitation/request":
            questions[message["id"]] = {"params": params, "answer": None}
            found[-1][1].append(questions[message["id"]])
        elif line["dir"] == "c2s" and "method" not in message and message["id"] in questions:
            questions[message["id"]]["answer"] = {k: v for k, v in message.items() if k != "id"}
    return found


def model_of(turns: list[tuple[list[Message], list[Message]]]) -> ScriptedModel:
    """Calls one after another; ids are made unique, because we do not take one twice in a thread."""
    samplings: list[Call | Say] = []
    for number, (items, _) in enumerate(turns):
        samplings += [
            Call(f"mcp__{item['server']}__{item['tool']}", item["arguments"], f"{item['id']}-{number}-{place}")
            for place, item in enumerate(items)
        ]
        samplings.append(Say("x"))
    return ScriptedModel(*samplings)


def said(item: Message) -> Any:
    if item["result"] is None:
        return None
    text = json.loads(item["result"]["content"][0]["text"])
    if "error" in text:
        return {"refused": text["error"]["code"]}
    return text.get("result", text)


@requirement("RPC-1", "RPC-5")
@pytest.mark.parametrize(
    ("name", "mode", "policy", "said_at_start"),
    [
        ("d_accept", "approve", {}, {}),
        ("d_decline", "approve", {}, {}),
        ("d_policy_never", "approve", {"approval": "never"}, {}),
        ("d_policy_never", "approve", {}, {"approvalPolicy": "never"}),
        ("d_policy_never_full", "approve", {"approval": "never", "full_access": True}, {}),
        ("d_policy_never_full", "approve", {}, {"approvalPolicy": "never", "sandbox": "danger-full-access"}),
        ("f_decline", "prompt", {}, {}),
        ("f_prompt", "prompt", {}, {}),
    ],
)
async def test_turns_and_their_questions_go_as_they_went(
    tmp_path: Path, name: str, mode: Any, policy: dict[str, Any], said_at_start: dict[str, Any]
) -> None:
    turns = turns_of(lines(name))
    configs = servers(name, default_tools_approval_mode=mode, tool_approval_modes=MODES.get(name, {}))
    async with client(tmp_path, configs, model_of(turns), **policy) as driver:
        expected = [question for _, questions in turns for question in questions]
        asked: list[Message] = []

        def answer(request: Message) -> Message | None:
            asked.append(request)
            given: Message | None = expected[len(asked) - 1]["answer"]
            return given

        driver.answers = answer
        thread_id = (await driver.request("thread/start", **said_at_start))["thread"]["id"]
        for items, _ in turns:
            begun = await driver.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
            await driver.completion(begun["turn"]["id"])
            heard = [
                message["params"]["item"]
                for message in driver.messages
                if message.get("method") == "item/completed"
                and message["params"]["turnId"] == begun["turn"]["id"]
                and message["params"]["item"]["type"] == "mcpToolCall"
            ]
            for ours, theirs in zip(heard, items, strict=True):
                same = ("server", "tool", "arguments", "appContext", "pluginId", "readOnlyHint")
                assert {k: ours[k] for k in same} == {k: theirs[k] for k in same}
                compare_ends(ours, theirs, asked, expected)
        compare_questions(asked, expected)


@requirement("APR-2", "RPC-5")
async def test_an_approval_for_ever_is_written_down_and_nobody_is_asked_again_as_it_went(tmp_path: Path) -> None:
    recorded = FOLDER / "f_persist_always__svc.jsonl"
    table = (
        f"[mcp_servers.svc]\ncommand = {json.dumps(sys.executable)}\n"
        f'args = {json.dumps([str(PLAYER), str(recorded)])}\nprotocol = "2025-06-18"\n'
    )
    (tmp_path / "config.toml").write_text(table, encoding="utf-8")
    turns = turns_of(lines("f_persist_always"))
    ((items, questions),) = turns
    host = Host.open(home=tmp_path, project=tmp_path, model=model_of(turns), grace=30.0)
    async with host as opened, app_server(opened) as desk:
        driver = await desk.connect()
        asked: list[Message] = []

        def answer(request: Message) -> Message | None:
            asked.append(request)
            given: Message | None = questions[len(asked) - 1]["answer"]
            return given

        driver.answers = answer
        thread_id = (await driver.request("thread/start"))["thread"]["id"]
        begun = await driver.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        await driver.completion(begun["turn"]["id"])
        compare_questions(asked, questions)
        assert asked[0]["params"]["_meta"]["persist"] == questions[0]["params"]["_meta"]["persist"]
        heard = [m["params"]["item"] for m in driver.messages if m.get("method") == "item/completed"]
        calls = [item for item in heard if item["type"] == "mcpToolCall"]
        assert [(call["status"], said(call)) for call in calls] == [(item["status"], said(item)) for item in items]
    written = tomllib.loads((tmp_path / "config.toml").read_text(encoding="utf-8"))
    assert written["mcp_servers"]["svc"]["tools"] == {"none": {"approval_mode": "approve"}}


def compare_ends(ours: Message, theirs: Message, asked: list[Message], expected: list[Message]) -> None:
    assert ours["status"] == theirs["status"]
    assert (ours["error"] is None) == (theirs["error"] is None)
    if theirs["result"] is None:
        return
    last = json.dumps(expected[len(asked) - 1]["answer"].get("result")) if asked else ""
    if ours["tool"] in WITHOUT_FIELDS:
        assert said(ours)["action"] == said(theirs)["action"]
    elif (ours["tool"] == "form" and last in CHECKED_CONTENT) or ours["tool"] == UNDESCRIBED:
        assert said(ours) == {"action": "decline"}
    else:
        assert said(ours) == said(theirs)


def compare_questions(asked: list[Message], expected: list[Message]) -> None:
    assert len(asked) == len(expected)
    for ours, theirs in zip(asked, expected, strict=True):
        ours, theirs = ours["params"], theirs["params"]
        assert set(ours) == set(theirs)
        same = ("serverName", "mode", "requestedSchema", "url")
        assert {k: ours.get(k) for k in same} == {k: theirs.get(k) for k in same}
        assert set(ours["_meta"] or {}) >= set(theirs["_meta"] or {})
