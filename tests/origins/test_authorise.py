"""The eight checks of a read that names a call."""

from dataclasses import replace
from typing import Any

import pytest

from interlock.origins.authorise import authorise
from interlock.origins.store import Origin
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.policy import AppPolicy, Policy
from interlock.vocabulary.snapshot import Snapshot
from tests.manifest import requirement
from tests.threads.fakes import FakeConnection, config, snapshot, tool

APPS = "codex_apps"
ORIGIN = Origin(
    server=APPS,
    call_id="c1",
    turn_id="t1",
    tool="show",
    connector_id="calendar",
    link_id="work",
    uri="ui://week",
    ambiguous_account=False,
)
META: dict[str, Any] = {"connector_id": "calendar", "link_id": "work", "ui": {"visibility": ["app"]}}
ALLOWED = Policy(apps={"calendar": AppPolicy(enabled=True)}, apps_default=AppPolicy(enabled=False))


def today(meta: dict[str, Any], *, name: str = "show", policy: Policy = ALLOWED, grants: bool = True) -> Snapshot:
    server = config(APPS, grants_origins=grants)
    return snapshot((server, FakeConnection(APPS), [tool(name, meta=meta)]), policy=policy)


def reason(origin: Origin | None, now: Snapshot, *, server: str = APPS, uri: str = "ui://week") -> str:
    try:
        authorise(origin, call_id="c1", server=server, uri=uri, today=now)
    except NotPermitted as refusal:
        return str(refusal.facts["reason"])
    return "allowed"


WITHOUT_LINK = replace(ORIGIN, link_id=None)
EXPLICIT = {"connector_id": "calendar", "_codex_apps": {"requires_explicit_link_id": True}}
FORBIDDEN = Policy(apps={"calendar": AppPolicy(enabled=False)})

CASES: dict[str, tuple[Origin | None, Snapshot, dict[str, str]]] = {
    "unknown_call": (None, today(META), {}),
    "other_uri": (ORIGIN, today(META), {"uri": "ui://month"}),
    "ambiguous_account": (replace(ORIGIN, ambiguous_account=True), today(META), {}),
    "tool_unavailable": (ORIGIN, today(META, name="other"), {}),
    "other_connector": (ORIGIN, today({**META, "connector_id": "mail"}), {}),
    "other_link": (ORIGIN, today({**META, "link_id": "home"}), {}),
    "link_required": (WITHOUT_LINK, today(EXPLICIT), {}),
    "app_disabled": (ORIGIN, today(META, policy=FORBIDDEN), {}),
    "allowed": (ORIGIN, today(META), {}),
}


@requirement("ORI-4")
@pytest.mark.parametrize("expected", CASES)
def test_each_check_has_its_own_reason(expected: str) -> None:
    origin, now, named = CASES[expected]
    assert reason(origin, now, **named) == expected


@requirement("ORI-4")
def test_the_checks_come_in_their_order() -> None:
    everything_wrong = replace(ORIGIN, ambiguous_account=True, link_id=None)
    now = today({"connector_id": "mail"}, name="other", policy=FORBIDDEN)
    assert reason(None, now, uri="ui://month") == "unknown_call"
    assert reason(everything_wrong, now, uri="ui://month") == "other_uri"
    assert reason(everything_wrong, now) == "ambiguous_account"
    certain = replace(everything_wrong, ambiguous_account=False)
    assert reason(certain, now) == "tool_unavailable"
    explicit = {"_codex_apps": {"requires_explicit_link_id": True}}
    other = today({"connector_id": "mail", "link_id": "home", **explicit}, policy=FORBIDDEN)
    assert reason(certain, other) == "other_connector"
    linked = today({"connector_id": "calendar", "link_id": "home", **explicit}, policy=FORBIDDEN)
    assert reason(certain, linked) == "other_link"
    assert reason(certain, today({"connector_id": "calendar", **explicit}, policy=FORBIDDEN)) == "link_required"
    assert reason(certain, today({"connector_id": "calendar"}, policy=FORBIDDEN)) == "app_disabled"


@requirement("ORI-4")
def test_a_call_of_one_server_grants_nothing_at_another() -> None:
    assert reason(ORIGIN, today(META), server="mail") == "unknown_call"


@requirement("ORI-4")
def test_a_server_that_grants_origins_no_longer_has_no_connectors() -> None:
    assert reason(ORIGIN, today(META, grants=False)) == "other_connector"


@requirement("ORI-4")
def test_an_app_that_no_table_names_follows_the_default_of_all_apps() -> None:
    assert reason(ORIGIN, today(META, policy=Policy())) == "allowed"
    assert reason(ORIGIN, today(META, policy=Policy(apps_default=AppPolicy(enabled=False)))) == "app_disabled"


def test_a_refusal_is_a_sentence_that_names_the_call() -> None:
    with pytest.raises(NotPermitted, match=r"cannot read a resource for call 'c1': its tool 'show' is not there now"):
        authorise(ORIGIN, call_id="c1", server=APPS, uri="ui://week", today=Snapshot(generation=1))
