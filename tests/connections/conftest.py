from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for each test: the ledger of processes is kept there."""
    monkeypatch.setenv("INTERLOCK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
