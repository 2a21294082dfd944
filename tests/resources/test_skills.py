"""Skills of a server, over a client that follows the connections."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from interlock.resources import skills as module
from interlock.resources.client import ResourceClient
from interlock.resources.skills import Skills
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.resource import Page, Resource, ResourceContent, ResourceRead
from interlock.vocabulary.server import ServerStatus
from interlock.vocabulary.snapshot import ServerView
from tests.manifest import requirement
from tests.threads.fakes import FakeConnection, config

pytestmark = pytest.mark.anyio

APPS = "codex_apps"


def resource(uri: str, **members: str) -> Resource:
    return Resource(uri=uri, name=members.pop("name", uri.split("/")[-1]), **members)  # type: ignore[arg-type] # texts


WEEK = resource("skill://week/SKILL.md", name="week", description="Plans a\nweek.")
TRIP = resource("skill://travel/trip/SKILL.md", title="Trips")
OTHERS = (resource("skill://week/days.md"), resource("skill://week/more/hours.md"), resource("doc://week/SKILL.md"))


class Library(FakeConnection):
    """A server with pages of resources; notes what it was asked."""

    def __init__(self, *pages: tuple[Resource, ...]) -> None:
        super().__init__(APPS)
        self.pages = pages or ((TRIP, WEEK, *OTHERS),)
        self.asked: list[str] = []
        self.contents: dict[str, ResourceContent] = {}
        self.failure: ServerFailed | None = None
        self.hanging = False

    async def list_resources(self, *, cursor: str | None, timeout: float, **rest: Any) -> Page[Resource]:
        self.asked.append(f"list {cursor or ''}".strip())
        await self._may_fail()
        place = int(cursor or 0)
        following = str(place + 1) if place + 1 < len(self.pages) else None
        return Page(entries=self.pages[place], next_cursor=following)

    async def read_resource(self, uri: str, *, timeout: float, **rest: Any) -> ResourceRead:
        self.asked.append(uri)
        await self._may_fail()
        return ResourceRead(contents=(self.contents.get(uri, ResourceContent(uri=uri, text=f"text of {uri}")),))

    async def _may_fail(self) -> None:
        if self.hanging:
            await anyio.sleep_forever()
        if self.failure is not None:
            raise self.failure


class World:
    """The connections of now; `replace` is a new generation."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.client = ResourceClient(self.latest)
        self.skills = Skills(self.client)

    @contextmanager
    def latest(self) -> Iterator[Mapping[str, ServerView]]:
        yield {APPS: ServerView(config=config(APPS), connection=self.library)}


@pytest.fixture
def world() -> World:
    return World(Library())


@requirement("SKL-1")
async def test_packages_are_found_by_their_main_file(world: World) -> None:
    week, trip = sorted((await world.skills.list()).skills, key=lambda skill: skill.title, reverse=True)
    assert (week.name, week.title, week.description) == ("week", "week", "Plans a week.")
    assert week.files == ("skill://week/SKILL.md", "skill://week/days.md", "skill://week/more/hours.md")
    assert (trip.name, trip.title, trip.uri) == ("travel/trip", "Trips", TRIP.uri)


@requirement("SKL-1")
async def test_all_pages_are_listed_once_and_kept_until_the_connections_change(world: World) -> None:
    world.library.pages = ((WEEK,), OTHERS, (TRIP,))
    assert len((await world.skills.list()).skills) == 2
    await world.skills.instructions()
    assert world.library.asked == ["list", "list 1", "list 2"]
    world.library = Library((WEEK,))
    assert [skill.name for skill in (await world.skills.list()).skills] == ["week"]


@requirement("SKL-2")
async def test_the_cache_key_follows_connections_and_nothing_else(world: World) -> None:
    key = world.client.cache_key
    assert world.client.cache_key == key
    world.library.restarts += 1
    restarted = world.client.cache_key
    assert restarted != key
    world.library.status = ServerStatus.STARTING
    assert world.client.cache_key == restarted
    world.library = Library()
    assert world.client.cache_key != restarted


@requirement("SKL-2")
@pytest.mark.parametrize("status", [status for status in ServerStatus if status is not ServerStatus.READY])
async def test_a_server_that_is_not_ready_is_not_waited_for(world: World, status: ServerStatus) -> None:
    world.library.status = status
    with anyio.fail_after(60):
        for request in (world.client.list_resources(APPS), world.client.read_resource(APPS, WEEK.uri)):
            with pytest.raises(ServerFailed, match="not ready"):
                await request
        with pytest.raises(ServerFailed, match="there is no server"):
            await world.client.list_resources("other")
    assert world.library.asked == []


@requirement("SKL-1")
async def test_failures_are_warnings_and_not_kept(world: World) -> None:
    world.library.failure = ServerFailed("it broke", server=APPS)
    listing = await world.skills.list()
    assert listing.skills == ()
    assert listing.warnings == ("the skills of server 'codex_apps' are not all known: it broke",)
    assert await world.skills.instructions() == ""
    world.library.failure = None
    assert len((await world.skills.list()).skills) == 2


@requirement("SKL-1")
async def test_what_was_listed_before_a_bound_is_met_is_taken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAXIMUM_PAGES", 2)
    world.library.pages = ((WEEK,), (TRIP,), (resource("skill://third/SKILL.md"),))
    listing = await world.skills.list()
    assert len(listing.skills) == 2
    assert listing.warnings == ("server 'codex_apps' lists more than 2 pages or 2000 resources",)
    monkeypatch.setattr(module, "MAXIMUM_RESOURCES", 1)
    world.library.pages = ((WEEK, TRIP), (TRIP,))
    listing = await world.skills.list()
    assert [skill.name for skill in listing.skills] == ["week"]
    assert len(listing.warnings) == 1


@requirement("SKL-1")
async def test_a_server_that_never_ends_its_pages_or_an_answer_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LISTING_SECONDS", 0.05)
    world.library.hanging = True
    with anyio.fail_after(60):
        assert (await world.skills.list()).warnings == (
            "the skills of server 'codex_apps' were not listed within 0.05 s",
        )


@requirement("SKL-1")
async def test_too_many_skills_are_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAXIMUM_SKILLS", 1)
    listing = await world.skills.list()
    assert [skill.name for skill in listing.skills] == ["travel/trip"]
    assert "offers 2 skills; 1 are taken" in listing.warnings[0]


@requirement("SKL-1")
async def test_a_skill_is_read_inside_its_package(world: World) -> None:
    assert (await world.skills.read("week")).text == "text of skill://week/SKILL.md"
    assert (await world.skills.read("week", "more/hours.md")).text == "text of skill://week/more/hours.md"


OUTSIDE = [
    "",
    "..",
    "../travel/trip/SKILL.md",
    "a/../../x",
    "%2e%2e/x",
    "a%2f..%2fx",
    "/x",
    "a//b",
    "a\\b",
    "a?b",
    "a#b",
]


@requirement("SKL-1")
@pytest.mark.parametrize("path", [*OUTSIDE, "x" * 2000, "a\nb"])
async def test_no_path_leads_out_of_the_package(world: World, path: str) -> None:
    with pytest.raises(InvalidRequest, match="is no path inside the skill 'week'"):
        await world.skills.read("week", path)
    assert world.library.asked == ["list"]


@requirement("SKL-1")
async def test_what_the_server_gives_instead_is_not_taken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.library.contents["skill://week/a"] = ResourceContent(uri="skill://travel/trip/SKILL.md", text="x")
    with pytest.raises(ServerFailed, match="gave what is not of skill 'week'"):
        await world.skills.read("week", "a")
    monkeypatch.setattr(module, "CONTENT_LIMIT", 3)
    with pytest.raises(ServerFailed, match="longer than 3 characters"):
        await world.skills.read("week", "b")
    with pytest.raises(InvalidRequest, match="there is no skill 'nothing'"):
        await world.skills.read("nothing")


@requirement("SKL-1")
@pytest.mark.parametrize(
    "uri", ["skill:///SKILL.md", "skill://SKILL.md", "skill://../SKILL.md", "skill://a/../b/SKILL.md"]
)
async def test_a_package_with_an_odd_name_is_none(world: World, uri: str) -> None:
    world.library.pages = ((resource(uri),),)
    assert (await world.skills.list()).skills == ()


@requirement("SKL-1")
async def test_the_model_hears_of_skills_in_bounded_text(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    text = await world.skills.instructions()
    assert "- week: Plans a week. (skill://week/SKILL.md)" in text
    assert "read_mcp_resource (server 'codex_apps')" in text
    monkeypatch.setattr(module, "INSTRUCTIONS_LIMIT", len(text) - 1)
    assert (await world.skills.instructions()).endswith("- and 1 more\n")
