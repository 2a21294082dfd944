"""`interlock mcp import`: the servers that other hosts have, taken over.

Owns: what is looked through, how it is shown, the choice, writing what was chosen.
Never: takes over what nobody chose, or changes a file of another host.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from interlock.configuration.documents import parse, read_bytes
from interlock.configuration.importing import Found, distinct, readable
from interlock.configuration.load import HOME_FILE
from interlock.configuration.other_hosts import HostFile, usual_places
from interlock.configuration.server_tables import add_servers
from interlock.surfaces.cli.mcp_edit import keep_trust, masked_table, plain_secrets, tell_states
from interlock.surfaces.cli.opening import home
from interlock.surfaces.cli.output import Table, at_terminal, complain, print_json, print_table, say, warn
from interlock.vocabulary.errors import InvalidRequest

State = Literal["new", "there already", "differs", "cannot be taken over"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The options of `mcp import`."""

    names: Sequence[str] = ()
    everything: bool = False
    file: Path | None = None
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """A found server, beside what the file that is written to has under its name."""

    found: Found
    state: State


def take_over(choice: Choice, config: Path | None, as_json: bool) -> int:
    """Show, choose, write. 1 when a chosen server cannot be taken over."""
    target = config or home() / HOME_FILE
    places = (_named(choice.file),) if choice.file is not None else usual_places(Path.cwd(), os.environ)
    offers, unreadable = _look(places, target)
    if not as_json:
        _show(offers, places)
        for sentence in unreadable:
            complain(sentence)
    if not offers and choice.file is not None and unreadable:
        return 2
    chosen = _chosen(choice, offers, ask=not as_json and at_terminal(sys.stdin) and at_terminal(sys.stderr))
    taken, left = _sorted_out(choice, chosen)
    if taken:
        done = add_servers(target, {o.found.name: o.found.table or {} for o in taken}, replace=choice.replace)
        keep_trust(target, done)
    if as_json:
        print_json(_document(offers, taken, unreadable, target))
    else:
        _tell(offers, taken, left, target)
        tell_states([offer.found.name for offer in taken], target, config)
    return 1 if left else 0


def _named(file: Path) -> HostFile:
    """A file that the user named; one of Claude Code or VS Code may hold its servers deeper."""
    if not file.is_file():
        raise InvalidRequest(f"cannot read {file}: there is no such file; check the path")
    return HostFile(host=file.name, key="other", file=file, member=("mcp",) if file.name == "settings.json" else ())


def _look(places: Sequence[HostFile], target: Path) -> tuple[list[Offer], list[str]]:
    """All servers of the places that exist, and a sentence for each file that cannot be read."""
    found: list[Found] = []
    unreadable: dict[str, None] = {}
    for place in places:
        if place.file.is_file() and not _same(place.file, target):
            servers, problem = readable(place, os.environ)
            found += servers
            if problem is not None:
                unreadable[problem] = None
    present = _present(target)
    return [Offer(each, _state(each, present)) for each in distinct(tuple(found))], list(unreadable)


def _present(target: Path) -> dict[str, Any]:
    servers = parse(target, read_bytes(target)).get("mcp_servers", {}) if target.exists() else {}
    return servers if isinstance(servers, dict) else {}


def _same(file: Path, target: Path) -> bool:
    return target.exists() and file.samefile(target)


def _state(found: Found, present: dict[str, Any]) -> State:
    if found.table is None:
        return "cannot be taken over"
    if found.name not in present:
        return "new"
    return "there already" if present[found.name] == found.table else "differs"


def _chosen(choice: Choice, offers: Sequence[Offer], *, ask: bool) -> list[Offer]:
    if choice.everything:
        return [offer for offer in offers if offer.state != "there already"]
    names = list(choice.names)
    if not names and ask and any(offer.state != "there already" for offer in offers):
        names = _asked()
        if names == ["all"]:
            return [offer for offer in offers if offer.state != "there already"]
    by_name = {offer.found.name: offer for offer in offers}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        known = ", ".join(by_name) or "none"
        raise InvalidRequest(f"there is no server {unknown[0]!r} to take over; found were: {known}")
    return [by_name[name] for name in dict.fromkeys(names)]


def _asked() -> list[str]:
    import typer

    answer: str = typer.prompt(
        "Which ones? (names, or all; nothing for none)", default="", show_default=False, err=True
    )
    return answer.replace(",", " ").split()


def _sorted_out(choice: Choice, chosen: Sequence[Offer]) -> tuple[list[Offer], list[Offer]]:
    """What is written, and what was chosen in vain."""
    writable = ("new", "differs") if choice.replace else ("new",)
    taken = [offer for offer in chosen if offer.state in writable]
    return taken, [offer for offer in chosen if offer.state not in (*writable, "there already")]


def _show(offers: Sequence[Offer], places: Sequence[HostFile]) -> None:
    rows = [(o.found.name, o.state, o.found.host.host, _starts(o.found), str(o.found.host.file)) for o in offers]
    looked = ", ".join(dict.fromkeys(str(place.file) for place in places))
    headings = ("name", "state", "host", "starts", "file")
    print_table(Table(headings, rows, f"nothing was found; looked at {looked}", names=("name",)))


def _starts(found: Found) -> str:
    if found.table is None:
        return "-"
    table = masked_table(found.table)
    words = [table["command"], *table.get("args", [])] if "command" in table else [table.get("url")]
    return " ".join(word if isinstance(word, str) else f"({word})" for word in words)


def _tell(offers: Sequence[Offer], taken: Sequence[Offer], left: Sequence[Offer], target: Path) -> None:
    for offer in taken or (() if left else offers):
        for note in offer.found.notes:
            warn(f"{offer.found.name}: {note}")
    for offer in left or (offers if not taken else ()):
        if offer.found.problem is not None:
            complain(f"cannot take over server {offer.found.name!r} of {offer.found.host.file}: {offer.found.problem}")
        elif offer.state == "differs":
            complain(f"{target} has another server {offer.found.name!r}; --replace puts this one in its place")
    for offer in taken:
        for variable in plain_secrets(offer.found.table or {}):
            warn(
                f"{offer.found.name}: the value of {variable} stands in {target} as it did in {offer.found.host.file}; "
                f'a reference such as {{ keyring = "service/name" }} would keep it out of files'
            )
        say(f"took {offer.found.name} over into {target}")
    if taken:
        say("`interlock doctor` tries them")
    elif not left and any(offer.state == "new" for offer in offers):
        say(f"nothing was changed; `interlock mcp import NAME...` or --all takes them over into {target}")


def _document(
    offers: Sequence[Offer], taken: Sequence[Offer], unreadable: Sequence[str], target: Path
) -> dict[str, Any]:
    return {
        "found": [
            {
                "name": offer.found.name,
                "written_as": offer.found.written_as,
                "host": offer.found.host.host,
                "file": str(offer.found.host.file),
                "state": offer.state.replace(" ", "_"),
                "table": None if offer.found.table is None else masked_table(offer.found.table),
                "problem": offer.found.problem,
                "notes": list(offer.found.notes),
            }
            for offer in offers
        ],
        "unreadable": list(unreadable),
        "taken_over": [offer.found.name for offer in taken],
        "into": str(target),
    }
