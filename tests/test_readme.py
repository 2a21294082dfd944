"""What the README tells a stranger to type works as it stands there."""

import json
import re
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from interlock.testing import Call, Say, ScriptedEndpoint
from tests.manifest import requirement
from tests.surroundings import surroundings

pytestmark = pytest.mark.anyio

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
PATIENCE = 60.0
TIME = Call("mcp__time__get_current_time", {"timezone": "Europe/Rome"})


def block(language: str) -> str:
    """The one block of that language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    return str(text)


@asynccontextmanager
async def stranger(folder: Path) -> AsyncIterator[ScriptedEndpoint]:
    """A home with the README's configuration, but for where Python and the model's endpoint are."""
    async with ScriptedEndpoint(TIME, Say("it is late in Rome")) as endpoint:
        servers = block("toml").replace('".venv/bin/python"', json.dumps(sys.executable))
        provider = f'[model_providers.local]\nbase_url = "{endpoint.base_url}"\nenv_key = "OPENAI_API_KEY"\n'
        text = f'model_provider = "local"\n{servers}\n{provider}'
        (folder / "config.toml").write_text(text)
        (folder / "interlock.toml").write_text(text)
        yield endpoint


async def typed(folder: Path, *command: str) -> str:
    """What the command prints; it must have worked, and have had nothing to complain about."""
    home = surroundings(HOME=str(folder), INTERLOCK_HOME=str(folder), OPENAI_API_KEY="k-123")
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process([sys.executable, *command], env=home, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@requirement("CFG-1", "CAT-6")
async def test_the_program_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    async with stranger(tmp_path):
        printed = (await typed(tmp_path, "-c", block("python"))).splitlines()
    names, result, last_message = printed
    assert "mcp__time__get_current_time" in names
    assert json.loads(result.removesuffix(" False"))["timezone"] == "Europe/Rome"
    assert last_message == "it is late in Rome"


@requirement("CFG-1")
async def test_the_commands_of_the_readme_work_as_they_stand(tmp_path: Path) -> None:
    lines = [shlex.split(line, comments=True) for line in block("sh").splitlines()]
    assert all(line[0] == ".venv/bin/interlock" for line in lines)
    async with stranger(tmp_path):
        printed = [await typed(tmp_path, "-m", "interlock", *line[1:]) for line in lines]
    expected = ["connected", "mcp__time__", "Europe/Rome", "late in Rome", "What time is it in Rome?"]
    assert [words for words, said in zip(expected, printed, strict=True) if words not in said] == []


def test_every_file_that_the_readme_and_the_map_name_is_there() -> None:
    root = Path(__file__).parent.parent
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    names = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.(?:py|toml))`", (root / "docs/architecture.md").read_text()))
    assert len(names) > 30
    assert [name for name in names if not any((root / base / name).exists() for base in ("src/interlock", "."))] == []


def test_every_function_that_the_map_names_is_where_it_says() -> None:
    root = Path(__file__).parent.parent
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`\s+`([A-Za-z_.]+)`", (root / "docs/architecture.md").read_text())
    assert len(named) > 8
    for module, name in named:
        source = (root / "src/interlock" / module).read_text()
        for part in name.split("."):
            assert re.search(rf"(class|def) {part}\b", source), f"{module} has no {name}"
