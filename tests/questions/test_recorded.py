"""What servers were told in recorded conversations of another host, decided again here.

Differences on purpose: a form that requires something is not empty, whatever its properties are (QST-3); accepted
content is checked; a URL that is accepted has no content.
"""

import json
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock.questions.asking import Asking
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import Event
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.question import Accept, Answer, Cancel, Decline, Elicitation
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

RECORDED: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "vectors" / "recorded_answers.json").read_text(encoding="utf-8")
)
POLICIES = {
    "d_policy_never": Policy(approval="never"),
    "d_policy_never_full": Policy(approval="never", full_access=True),
    "d_policy_gran_off": Policy(mcp_elicitations=False),
}


class Store:
    async def record(self, event: Event) -> None:
        await anyio.lowlevel.checkpoint()


def opened(policy: Policy) -> Asking:
    numbers = count(1)
    return Asking(Store(), new_id=lambda: f"q{next(numbers)}", policy=lambda: policy)


async def told(asking: Asking, entry: dict[str, Any]) -> JsonObject:
    try:
        (result,) = await asking.elicit([Elicitation(server=entry["server"], params=entry["params"], era="handshake")])
    except InvalidRequest:
        return {"error": -32602}
    return result


def requires_something(entry: dict[str, Any]) -> bool:
    return bool(entry["params"].get("requestedSchema", {}).get("required"))


@requirement("QST-2", "QST-3", "QST-6")
@pytest.mark.parametrize("conversation", POLICIES)
async def test_policy_decides_as_recorded_and_nobody_is_asked(conversation: str) -> None:
    asking = opened(POLICIES[conversation])
    async with asking.audience() as questions:
        for entry in RECORDED[conversation]:
            expected = entry["got"]
            if expected.get("action") == "accept" and requires_something(entry):
                expected = {"action": "decline"}
            assert await told(asking, entry) == expected
        assert "waiting=0" in repr(questions)


@requirement("QST-1", "QST-6", "QST-12")
@pytest.mark.parametrize(
    ("conversation", "unfit"),
    [
        ("d_concurrent", []),
        ("d_accept", [2, 3]),  # content for a form without fields, and for a URL
        ("d_decline", [5, 6, 7]),  # a required name left out twice, and a member that the form does not have
    ],
)
async def test_answers_reach_the_server_as_recorded_unless_they_do_not_fit(conversation: str, unfit: list[int]) -> None:
    asking, refused = opened(Policy()), list[int]()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, asking.audience("thread") as questions:

            async def answer(number: int, entry: dict[str, Any]) -> None:
                question = await anext(questions)
                try:
                    await asking.answer(question.id, _answer(entry["got"]))
                except InvalidRequest:
                    refused.append(number)
                    await asking.answer(question.id, Decline())

            for number, entry in enumerate(RECORDED[conversation]):
                if "error" in entry["got"]:
                    assert await told(asking, entry) == entry["got"]
                    continue
                tasks.start_soon(answer, number, entry)
                result = await told(asking, entry)
                assert result == ({"action": "decline"} if number in unfit else _without_url_content(entry))

    assert refused == unfit


def _without_url_content(entry: dict[str, Any]) -> JsonObject:
    got = dict(entry["got"])
    if entry["params"].get("mode") == "url":
        got.pop("content", None)
    return got


def _answer(got: dict[str, Any]) -> Answer:
    match got["action"]:
        case "accept":
            return Accept(got.get("content"), meta=got.get("_meta"))
        case "cancel":
            return Cancel(meta=got.get("_meta"))
        case _:
            return Decline(meta=got.get("_meta"))
