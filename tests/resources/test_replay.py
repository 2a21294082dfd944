"""The resource tools over recorded servers, compared with what the reference program told its model.

Facts are compared (failed or completed, the server of the item, the JSON); sentences are ours. Where Interlock goes
further on purpose, the test says so.
"""

import json
import re
from typing import Any

import pytest

from interlock.history.clip import byte_budget, clip_text
from interlock.resources.arguments import item_server
from interlock.resources.tools import run
from interlock.vocabulary.errors import InterlockError, InvalidRequest, ServerFailed
from interlock.vocabulary.server import ServerStatus
from tests.manifest import requirement
from tests.resources.recorded import Recorded, binding, digits, recorded_run, vectors

pytestmark = pytest.mark.anyio

CASES = [
    case for case in vectors("resource_tools.json") if case["tool"].endswith(("_resources", "_templates", "_resource"))
]
HOST_NAMES = {"codex": "interlock"}


def expected_status(case: dict[str, Any]) -> str:
    """A call whose arguments were wrong leaves no item there, and a failed one here (BEHAVIOUR section 1)."""
    return "failed" if case["item"] is None else str(case["item"]["status"])


async def told(case: dict[str, Any]) -> tuple[str, str]:
    """Status and text of the case, here."""
    servers = recorded_run("a_resource_tools").values()
    try:
        outcome = await run(binding(*servers), case["tool"], case["arguments"])
    except InterlockError as error:
        return "failed", error.message
    assert outcome.server == item_server(case["arguments"])
    return "completed", outcome.text


@requirement("RES-1", "RES-2", "RES-3", "RES-4", "RES-5", "RES-7")
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["case"]))
async def test_the_model_is_told_what_the_reference_told_it(case: dict[str, Any]) -> None:
    status, text = await told(case)
    assert status == expected_status(case)
    if case["item"] is not None:
        server = case["item"]["server"]
        assert item_server(case["arguments"]) == HOST_NAMES.get(server, server)
    if status == "completed" and isinstance(case["output"], str):
        assert json.loads(text) == json.loads(case["output"])
        assert text.replace('"priority":1}', '"priority":1.0}') == case["output"]  # bytes and order too


@requirement("RES-10")
@pytest.mark.parametrize(
    "case", [case for case in CASES if isinstance(case["output"], dict)], ids=lambda c: str(c["case"])
)
async def test_a_long_read_is_cut_where_the_reference_cuts_it_and_the_marker_is_true(case: dict[str, Any]) -> None:
    _, whole = await told(case)
    text = clip_text(whole, byte_budget(10_000))
    assert text.startswith(case["output"]["head"])
    if not case["output"]["marker"]:
        assert text == whole
        assert len(text) == case["output"]["len"]
        return
    assert len(text.encode()) <= 12_000  # theirs counts its own overhang
    found = re.search(r"…(\d+) characters left out…", text)
    assert found is not None
    assert int(found[1]) == len(whole) - (len(text) - len(found[0]))


async def run_b(pages: dict[str, Any], **more: Recorded) -> str:
    servers = recorded_run("b_pages") | more
    return (await run(binding(*servers.values()), pages["tool"], json.dumps(pages["arguments"]))).text


def down() -> Recorded:
    return Recorded("down", status=ServerStatus.FAILED, reason="its command was not found")


@requirement("RES-5", "RES-6")
async def test_an_aggregate_gives_what_the_reference_gave_and_names_who_failed() -> None:
    pages = vectors("pages.json")["all"]
    answer = json.loads(await run_b(pages, down=down()))
    theirs = json.loads(pages["output"])["resources"]
    # Not advertised means not asked; the reference asks all the same.
    assert answer["resources"] == [entry for entry in theirs if entry["server"] != "nocap"]
    assert [error["server"] for error in answer["errors"]] == ["crash", "down", "dupcur", "errp1", "errp2", "loop"]
    assert set(answer) == {"resources", "errors"}


@requirement("RES-6")
async def test_where_every_server_with_templates_failed_there_is_no_empty_success() -> None:
    pages = vectors("pages.json")["tall"]
    assert json.loads(pages["output"]) == {"resourceTemplates": []}  # the reference hides three failures
    with pytest.raises(ServerFailed) as caught:
        await run_b(pages, down=down())
    assert [name in caught.value.message for name in ("crash", "down", "dupcur")] == [True] * 3
    assert "zeta" not in caught.value.message  # it knows no such method: without templates, not failed


SINGLES = [name for name in vectors("pages.json") if name not in {"all", "tall", "one_nocap"}]


@requirement("RES-4", "RES-6")
@pytest.mark.parametrize("name", SINGLES)
async def test_one_page_of_one_server_is_what_the_reference_gave(name: str) -> None:
    pages = vectors("pages.json")[name]
    if pages["status"] == "failed":
        with pytest.raises(ServerFailed):
            await run_b(pages, down=down())
        return
    assert await run_b(pages, down=down()) == pages["output"]


@requirement("RES-6")
async def test_a_server_that_does_not_advertise_resources_fails_when_named() -> None:
    with pytest.raises(ServerFailed) as caught:
        await run_b(vectors("pages.json")["one_nocap"])
    assert caught.value.kind == "unsupported"


async def test_the_recording_was_shortened_without_loss() -> None:
    assert len(digits(11_000)) == 11_000
    with pytest.raises(InvalidRequest):
        await run(binding(), "no_such_tool", "{}")
