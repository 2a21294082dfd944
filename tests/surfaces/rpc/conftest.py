"""Hosts with scripted servers and models, and app servers over them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Host
from interlock.surfaces.rpc.serving import Limits
from interlock.testing import scripted_server
from tests.surfaces.rpc.driver import Desk, app_server

Serve = Callable[..., AbstractAsyncContextManager[Desk]]
READ_ONLY = {"readOnlyHint": True}


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """An app server whose servers play the given scripts; `settings` of each server by its name."""

    @asynccontextmanager
    async def serve(
        scripts: dict[str, Any] | None = None,
        *,
        settings: dict[str, Any] | None = None,
        limits: Limits | None = None,
        **host: Any,
    ) -> AsyncIterator[Desk]:
        servers = {
            name: scripted_server(name, script, tmp_path, **(settings or {}).get(name, {}))
            for name, script in (scripts or {}).items()
        }
        async with (
            Host(servers, store=tmp_path / "interlock.db", **{"grace": 45.0, **host}) as opened,
            app_server(opened, limits) as desk,
        ):
            yield desk

    return serve
