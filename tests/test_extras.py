"""What an installation without extras can do, what it says of the rest, and that nothing is declared in vain."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BY_URL = {"aiosqlite"}
"""SQLAlchemy imports it, because of the store's URL."""
BROUGHT_ALONG = {"sniffio", "uvicorn", "shellingham"}
"""Of others: what openai has anyio ask, what the SDK's own servers run in, how typer knows the shell."""
PATIENCE = 50.0

WITHOUT = """
import asyncio, pathlib, sys
sys.modules.update(dict.fromkeys({blocked!r}))
folder = pathlib.Path(sys.argv[1])
{code}
"""
LIBRARY = """
import interlock
from interlock.testing import Call, Say, ScriptedModel, scripted_server

async def main():
    tool = {"name": "one", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    servers = {"s": scripted_server("s", {"tools": [tool]}, folder, required=True)}
    model = ScriptedModel(Call("mcp__s__one"), Say("done"))
    async with interlock.Host(servers, store=folder / "store.db", model=model) as host:
        turn = await (await host.start_thread()).start_turn("hello")
        print((await turn.finished()).last_message)
    async with interlock.Host({}, store=folder / "store.db") as host:
        (record,) = await host.threads()
        print([getattr(item, "status", None) for item in (await host.resume_thread(record.thread_id)).items])

asyncio.run(main())
"""
MODEL = """
import interlock
try:
    interlock.models.responses("m", api_key="k")
except interlock.InvalidRequest as error:
    print(error.message)
"""
POSTGRES = """
import interlock

async def main():
    async with interlock.Host({}, store="postgresql://127.0.0.1:1/x") as host:
        await host.threads()

try:
    asyncio.run(main())
except interlock.InvalidRequest as error:
    print(error.message)
"""
KEYRING = """
from interlock.configuration import load
(folder / "a.toml").write_text('[mcp_servers.a]\\ncommand = "x"\\nenv = { A = { keyring = "a/b" } }\\n')
print(load(folder / "a.toml").servers["a"].problem)
"""
WEBSOCKETS = """
import interlock
from interlock.surfaces.rpc import app_server
from interlock.surfaces.rpc.listening import Listening, read_place

async def main():
    async with interlock.Host({}, store=folder / "store.db") as host:
        await app_server.serve(host, Listening(place=read_place("ws://127.0.0.1:0")), home=str(folder))

try:
    asyncio.run(main())
except interlock.InvalidRequest as error:
    print(error.message)
"""
WATCH = """
import interlock
(folder / "a.toml").write_text("")
try:
    interlock.Host.open(folder / "a.toml", watch=True)
except interlock.InvalidRequest as error:
    print(error.message)
"""
COMMAND = """
sys.argv = ["interlock", {words}]
from interlock.surfaces.cli.main import main
main()
"""


def imported() -> set[str]:
    """The top-level packages that src names in an import, whether it runs at once or later."""
    names: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=aliases):
                    names |= {alias.name.partition(".")[0] for alias in aliases}
                case ast.ImportFrom(module=str(module), level=0):
                    names.add(module.partition(".")[0])
                case ast.Call(args=[ast.Constant(value=str(module)), *_]) if is_import(node.func):
                    names.add(module.partition(".")[0])
    return names - sys.stdlib_module_names - {"interlock"}


def is_import(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in {"import_module", "find_spec"}


def normalised(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[>=<! ;]", requirement)[0]).lower()


def extras() -> set[str]:
    """The packages that extras bring, those of the development apart."""
    lists = (asked for name, asked in PROJECT["optional-dependencies"].items() if name not in ("all", "dev"))
    return {normalised(asked) for entry in lists for asked in entry} - {"interlock"}


def test_what_src_imports_is_declared_and_what_is_declared_is_imported() -> None:
    distributions = packages_distributions()
    used = {normalised(d) for module in imported() for d in distributions.get(module, [module])}
    declared = {normalised(asked) for asked in PROJECT["dependencies"]} | extras()
    assert declared - used == BY_URL
    assert used - declared == BROUGHT_ALONG


def without_extras(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code where no package of an extra can be imported."""
    blocked = {package.replace("-", "_") for package in extras()}
    assert blocked >= {"typer", "rich", "prompt_toolkit", "openai", "asyncpg", "keyring", "watchfiles", "websockets"}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(blocked=blocked, code=code), str(folder)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_without_extras_the_library_is_whole(tmp_path: Path) -> None:
    done = without_extras(tmp_path, LIBRARY)
    assert done.stdout.splitlines() == ["done", "[None, 'completed', None]"], done.stderr


def test_without_extras_the_help_is_printed(tmp_path: Path) -> None:
    done = without_extras(tmp_path, COMMAND.format(words='"--help"'))
    assert (done.returncode, "app-server" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("extra", "package", "code"),
    [
        ("openai", "openai", MODEL),
        ("postgres", "asyncpg", POSTGRES),
        ("keyring", "keyring", KEYRING),
        ("watch", "watchfiles", WATCH),
        ("app-server", "websockets", WEBSOCKETS),
        ("cli", "typer", COMMAND.format(words='"mcp", "list"')),
    ],
)
def test_what_an_extra_brings_is_missed_in_one_sentence(tmp_path: Path, extra: str, package: str, code: str) -> None:
    done = without_extras(tmp_path, code)
    (line,) = (done.stdout + done.stderr).splitlines()
    assert line.endswith(f"the package {package} is not installed; run: pip install 'interlock[{extra}]'")
