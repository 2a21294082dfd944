"""The shape of the code: sizes, pure rooms, who may import what. No exceptions are listed; a wrong rule is changed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "interlock"
MODULES = sorted(SOURCE.rglob("*.py"))
MODULE_LIMIT, FUNCTION_LIMIT = 400, 50

PURE = {
    "connections": {"startup", "paging"},
    "history": {"fold", "clip"},
    "catalog": {"naming", "registry", "showing"},
    "resources": {"arguments", "templates"},
    "questions": {"policy", "forms", "checks", "urls", "elicitation", "pending", "approval", "rules"},
    "origins": {"store", "authorise"},
    "memory": {"markup", "citation"},
    "surfaces": {"peer", "projection", "translator", "question_shapes", "shapes", "notifications", "paging"},
}
WORLDLY = {"anyio", "asyncio", "mcp", "mcp_types", "sqlalchemy", "logging", "subprocess", "socket", "aiohttp"}


def lines_of_code(source: str, tree: ast.AST) -> int:
    """Lines that are neither blank, nor comment, nor docstring."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for statement in body:
                if isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str):
                    skipped |= set(range(statement.lineno, (statement.end_lineno or 0) + 1))
    first = getattr(tree, "lineno", 1)
    last = getattr(tree, "end_lineno", None) or len(source.splitlines())
    lines = source.splitlines()
    return sum(
        1
        for number in range(first, last + 1)
        if number not in skipped and lines[number - 1].strip() and not lines[number - 1].strip().startswith("#")
    )


def imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def is_pure(path: Path) -> bool:
    room = path.relative_to(SOURCE).parts[0]
    return room == "vocabulary" or path.stem in PURE.get(room, set())


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_and_functions_stay_small(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert lines_of_code(source, tree) <= MODULE_LIMIT
    too_long = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of_code(source, node) > FUNCTION_LIMIT
    ]
    assert too_long == []


@pytest.mark.parametrize("path", [p for p in MODULES if is_pure(p)], ids=lambda p: str(p.relative_to(SOURCE)))
def test_pure_modules_touch_nothing_of_the_world(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert sorted({name.split(".")[0] for name in imported(tree)} & WORLDLY) == []
    if path.stem != "ports":  # a Protocol may describe what waits
        assert not any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in ast.walk(tree))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_connections_and_the_demo_servers_import_the_sdk(path: Path) -> None:
    names = imported(ast.parse(path.read_text(encoding="utf-8")))
    sdk = {name for name in names if name.split(".")[0] in {"mcp", "mcp_types"}}
    room = path.relative_to(SOURCE).parts[0]
    if room == "demo":
        sdk = {name for name in sdk if not name.startswith("mcp.server")}
    assert room == "connections" or sdk == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_every_module_says_what_it_owns(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    if path.name not in {"__init__.py", "__main__.py"} and "migrations" not in path.parts:
        assert "\nOwns: " in docstring
        assert "\nNever: " in docstring


def test_import_contracts_hold() -> None:
    config = str(ROOT / "pyproject.toml")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--config", config]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
