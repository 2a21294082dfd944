"""What the tests start does not outlive them."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 60.0

pytestmark = pytest.mark.anyio

PROGRAM = """
import sys, time
from pathlib import Path
from tests.stores.parting import Parting

folder, left = sys.argv[1:]
parting = Parting(Path(folder), "nobody", "/bin/sh", "-c", f"touch {left}")
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that another user can write to."""
    folder = Path(tempfile.mkdtemp(prefix="interlock-parting-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL])
async def test_a_parting_is_held_however_its_process_ends(shared: Path, ended_by: signal.Signals) -> None:
    folder, left = shared / "folder", shared / "left"
    folder.mkdir(mode=0o755)
    command = [sys.executable, "-c", PROGRAM, str(folder), str(left)]
    async with await anyio.open_process(command, cwd=ROOT, stderr=None, start_new_session=True) as asking:
        assert asking.stdout is not None
        assert await BufferedByteReceiveStream(asking.stdout).receive_until(b"\n", 100) == b"ready"
        assert not left.exists()
        asking.send_signal(ended_by)
        await asking.wait()
    with anyio.fail_after(PATIENCE):
        while folder.exists():  # noqa: ASYNC110 - nobody tells of the end of what is not our child
            await anyio.sleep(0.01)
    assert left.exists()
