import signal
import subprocess
from collections.abc import Iterator

import hypothesis
import pytest

from tests.stores.postgres_server import PostgresServer
from tests.surroundings import put_source_first

put_source_first()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else no command of a test would heed Ctrl-C

hypothesis.settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
"""The same examples in every run, and no judgement of how fast a busy machine gets through them."""
hypothesis.settings.load_profile("steady")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
        server.start()
    except (OSError, LookupError, subprocess.SubprocessError) as error:
        pytest.skip(f"PostgreSQL cannot run here: {error}")
    try:
        yield server
    finally:
        server.remove()
