"""A Host over scripted stdio servers, and what is left of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it ships no types
import pytest

from interlock import Host, ServerConfig
from interlock.testing import scripted_server

READ_ONLY = {"readOnlyHint": True}

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


def answering(name: str, text: str, **settings: Any) -> dict[str, Any]:
    """A read-only tool that answers with `text`."""
    return {"name": name, "annotations": READ_ONLY, "do": [{"text": text}], **settings}


@pytest.fixture
def servers(tmp_path: Path) -> Callable[..., dict[str, ServerConfig]]:
    """Scripts by server name become configurations; `settings` are for all of them."""

    def make(settings: dict[str, Any] | None = None, **scripts: dict[str, Any]) -> dict[str, ServerConfig]:
        return {name: scripted_server(name, script, tmp_path, **(settings or {})) for name, script in scripts.items()}

    return make


@pytest.fixture
def open_host(tmp_path: Path) -> OpenHost:
    """A Host with a store of the test's own, patient with slow machines; no process may be left of it."""

    @asynccontextmanager
    async def open_host(servers: dict[str, ServerConfig], **settings: Any) -> AsyncIterator[Host]:
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        async with Host(servers, store=tmp_path / "interlock.db", **{"grace": 45.0, **settings}) as host:
            yield host
        left = {child.pid for child in psutil.Process().children(recursive=True)} - before
        assert left == set()

    return open_host
