import hypothesis
import pytest

hypothesis.settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
"""The same examples in every run, and no judgement of how fast a busy machine gets through them."""
hypothesis.settings.load_profile("steady")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
