"""Skills that a server offers as resources: packages of instructions, each with a SKILL.md.

Owns: which packages a server has (bounded, kept per set of connections), reading inside one, and the text by which a
model hears of them.
Never: reads outside a package, makes an item, calls a model's tool, or fails a turn: what goes wrong is a warning
(SKL-1).

A package is all resources under `skill://NAME/`, found by its `skill://NAME/SKILL.md`.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from urllib.parse import unquote

import anyio

from interlock.resources.client import CacheKey, ResourceClient
from interlock.vocabulary.errors import InterlockError, InvalidRequest, ServerFailed
from interlock.vocabulary.resource import Resource, ResourceContent

DEFAULT_SERVER = "codex_apps"
SCHEME, MAIN = "skill://", "SKILL.md"

MAXIMUM_PAGES = 20
MAXIMUM_RESOURCES = 2000
MAXIMUM_SKILLS = 100
LISTING_SECONDS = 10.0
READING_SECONDS = 30.0
CONTENT_LIMIT = 1024 * 1024
"""Characters of one content that is read (base64 of a blob)."""
URI_LIMIT = 1024
DESCRIPTION_LIMIT = 500
INSTRUCTIONS_LIMIT = 16 * 1024
"""Characters; skills that do not fit any more are counted instead of described."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One package. `name` is its path below the scheme; `files` are the listed URIs in it, SKILL.md included."""

    name: str
    title: str
    description: str
    uri: str
    files: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """What every URI of the package begins with."""
        return self.uri.removesuffix(MAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillListing:
    """The skills sorted by name; `warnings` are sentences about what could not be had."""

    skills: tuple[Skill, ...] = ()
    warnings: tuple[str, ...] = ()


class Skills:
    """The skills of one server, through the client of a Thread."""

    def __init__(self, client: ResourceClient, server: str = DEFAULT_SERVER) -> None:
        self._client = client
        self._server = server
        self._kept: tuple[CacheKey, SkillListing] | None = None
        self._listing = anyio.Lock()

    def __repr__(self) -> str:
        return f"<Skills of {self._server} kept={self._kept is not None}>"

    async def list(self) -> SkillListing:
        """The skills now; never raises. Kept until the set of connections changes, failures not at all."""
        async with self._listing:
            try:
                key = self._client.cache_key
            except InterlockError as error:
                return SkillListing(warnings=(f"there are no skills now: {error.message}",))
            if self._kept is not None and self._kept[0] == key:
                return self._kept[1]
            self._kept = None
            found = await self._find()
            if not found.warnings:
                self._kept = (key, found)
            return found

    async def read(self, name: str, path: str = MAIN) -> ResourceContent:
        """A file of a skill: text, or base64 where the server says blob.

        Raises:
            InvalidRequest: there is no such skill, or `path` leads out of its package.
            ServerFailed: the server did not give it, within its time and size.
        """
        skill = next((skill for skill in (await self.list()).skills if skill.name == name), None)
        if skill is None:
            raise InvalidRequest(f"there is no skill {name[:200]!r} of server {self._server!r}")
        uri = _inside(skill, path)
        with anyio.move_on_after(READING_SECONDS) as scope:
            read = await self._client.read_resource(self._server, uri)
            return _one_content(self._server, skill, read.contents)
        assert scope.cancelled_caught  # noqa: S101 -- else it has returned
        raise ServerFailed(
            f"server {self._server!r} did not give {uri} within {READING_SECONDS:g} s",
            server=self._server,
            kind="deadline",
        )

    async def instructions(self) -> str:
        """The text for a model's instructions; empty without skills."""
        skills = (await self.list()).skills
        if not skills:
            return ""
        text = (
            f"Server {self._server!r} offers skills: instructions for particular tasks. When a task fits one, read "
            f"its {MAIN} first with read_mcp_resource (server {self._server!r}), then what it refers to.\n"
        )
        for place, skill in enumerate(skills):
            line = f"- {skill.title}: {skill.description or 'no description'} ({skill.uri})\n"
            if len(text) + len(line) > INSTRUCTIONS_LIMIT:
                return text + f"- and {len(skills) - place} more\n"
            text += line
        return text

    async def _find(self) -> SkillListing:
        resources: list[Resource] = []
        warnings: list[str] = []
        with anyio.move_on_after(LISTING_SECONDS) as scope:
            try:
                async with aclosing(self._pages(warnings.append)) as pages:
                    async for page in pages:
                        resources.extend(page)
            except InterlockError as error:
                warnings.append(f"the skills of server {self._server!r} are not all known: {error.message}")
        if scope.cancelled_caught:
            warnings.append(f"the skills of server {self._server!r} were not listed within {LISTING_SECONDS:g} s")
        skills = _packages(resources)
        if len(skills) > MAXIMUM_SKILLS:
            warnings.append(f"server {self._server!r} offers {len(skills)} skills; {MAXIMUM_SKILLS} are taken")
        return SkillListing(skills=skills[:MAXIMUM_SKILLS], warnings=tuple(warnings))

    async def _pages(self, warn: Callable[[str], None]) -> AsyncGenerator[tuple[Resource, ...], None]:
        """Page by page, until the server has no more or a bound is met."""
        cursor: str | None = None
        seen: set[str] = set()
        count = 0
        for _ in range(MAXIMUM_PAGES):
            page = await self._client.list_resources(self._server, cursor=cursor)
            count += len(page.entries)
            yield page.entries[: len(page.entries) - max(0, count - MAXIMUM_RESOURCES)]
            cursor = page.next_cursor
            if cursor is None or cursor in seen:
                return
            if count >= MAXIMUM_RESOURCES:
                break
            seen.add(cursor)
        warn(f"server {self._server!r} lists more than {MAXIMUM_PAGES} pages or {MAXIMUM_RESOURCES} resources")


def _packages(resources: list[Resource]) -> tuple[Skill, ...]:
    """The packages with a SKILL.md, each with the files that were listed in it; the first of a name wins."""
    usable = [r for r in resources if r.uri.startswith(SCHEME) and len(r.uri) <= URI_LIMIT and _is_plain(r.uri)]
    uris = [resource.uri for resource in usable]
    skills: dict[str, Skill] = {}
    for resource in usable:
        name, found, _ = resource.uri.removeprefix(SCHEME).rpartition(f"/{MAIN}")
        if found and resource.uri.endswith(f"/{MAIN}") and name not in skills:
            package = resource.uri.removesuffix(MAIN)
            skills[name] = Skill(
                name=name,
                title=_line(resource.title or resource.name or name),
                description=_line(resource.description or ""),
                uri=resource.uri,
                files=tuple(uri for uri in uris if uri.startswith(package)),
            )
    return tuple(skills[name] for name in sorted(skills))


def _inside(skill: Skill, path: str) -> str:
    """The URI of a path inside the package."""
    uri = skill.package + path
    if not path or len(uri) > URI_LIMIT or not _is_plain(uri):
        raise InvalidRequest(f"{path[:200]!r} is no path inside the skill {skill.name!r}")
    return uri


def _is_plain(uri: str) -> bool:
    """Whether nothing in the path leads elsewhere: no dot segments, also encoded ones, no query, no control."""
    path = uri.removeprefix(SCHEME)
    decoded = unquote(path)
    return (
        decoded.isprintable()
        and not any(sign in decoded for sign in "\\?#")
        and decoded.count("/") == path.count("/")
        and all(segment not in ("", ".", "..") for segment in decoded.split("/"))
    )


def _one_content(server: str, skill: Skill, contents: tuple[ResourceContent, ...]) -> ResourceContent:
    if not contents:
        raise ServerFailed(f"server {server!r} gave no content", server=server, kind="protocol")
    content = contents[0]
    if not content.uri.startswith(skill.package) or not _is_plain(content.uri):
        raise ServerFailed(
            f"server {server!r} gave what is not of skill {skill.name!r}", server=server, kind="protocol"
        )
    if len(content.text or content.blob or "") > CONTENT_LIMIT:
        raise ServerFailed(
            f"a file of skill {skill.name!r} is longer than {CONTENT_LIMIT} characters", server=server, kind="protocol"
        )
    return content


def _line(text: str) -> str:
    """On one line, bounded, without characters that steer or hide."""
    line = "".join(character if character.isprintable() else " " for character in text[: 4 * DESCRIPTION_LIMIT])
    return " ".join(line.split())[:DESCRIPTION_LIMIT]
