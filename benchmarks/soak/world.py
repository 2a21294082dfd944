"""The host under test with its servers.

Owns: the configurations, the processes of the HTTP servers, the mark by which every process of a soak is found.
Never: acts by itself.
"""

import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.soak.plan import Reload, ServerPlan
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import HttpTransport, ServerConfig, StdioTransport

MARK = "INTERLOCK_SOAK"
TOOL_TIMEOUT, STARTUP_TIMEOUT = 5.0, 30.0


class HttpServers:
    """The servers that are reached by URL: ours to start, to kill and to start again at the same port."""

    def __init__(self, mark: str, max_life: float) -> None:
        self._mark = mark
        self._max_life = max_life
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._urls: dict[str, str] = {}

    def start(self, plan: ServerPlan, port: int = 0) -> str:
        arguments = (*program(plan, self._max_life)[1:], "--http", str(port))
        environment = {**os.environ, MARK: self._mark}
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
            text=True,
        )
        assert process.stdout is not None
        self._running[plan.name] = process
        self._urls[plan.name] = url = process.stdout.readline().strip()
        return url

    def kill(self, plan: ServerPlan) -> None:
        """And start it again, where it was."""
        self._end(plan.name)
        port = re.search(r":(\d+)/", self._urls[plan.name])
        assert port is not None
        self.start(plan, int(port[1]))

    def close(self) -> None:
        for name in list(self._running):
            self._end(name)

    def _end(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


class World:
    """Twenty servers, and what may be done to them."""

    def __init__(self, plans: tuple[ServerPlan, ...], *, max_life: float) -> None:
        self.mark = uuid.uuid4().hex
        self.plans: Mapping[str, ServerPlan] = {plan.name: plan for plan in plans}
        self._http = HttpServers(self.mark, max_life)
        self.configs = {plan.name: self._config(plan, max_life) for plan in plans}

    def kill(self, name: str, process_id: int | None) -> None:
        """`process_id`: of a stdio server, None if it does not run."""
        plan = self.plans[name]
        if plan.over_http:
            self._http.kill(plan)
        elif process_id is not None:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)

    def after(self, reload: Reload) -> dict[str, ServerConfig]:
        """The configuration that a reload brings."""
        return {
            name: replace(config, enabled_tools=("echo", "wait")) if name in reload.filtered else config
            for name, config in self.configs.items()
            if name not in reload.missing
        }

    def close(self) -> None:
        self._http.close()

    def processes(self) -> dict[int, str]:
        """Every living process that carries the mark, with its command."""
        return {pid: command for pid, command in _marked(f"{MARK}={self.mark}".encode()) if pid != os.getpid()}

    def _config(self, plan: ServerPlan, max_life: float) -> ServerConfig:
        if plan.over_http:
            transport: HttpTransport | StdioTransport = HttpTransport(url=self._http.start(plan))
        else:
            command, *arguments = program(plan, max_life)
            marked = {MARK: Secret(self.mark, "the soak")}
            transport = StdioTransport(command=command, args=tuple(arguments), env=marked, cwd=str(ROOT))
        return ServerConfig(
            name=plan.name,
            transport=transport,
            shared=plan.shared,
            tool_timeout=TOOL_TIMEOUT,
            startup_timeout=STARTUP_TIMEOUT,
        )


@contextmanager
def world(plans: tuple[ServerPlan, ...], *, max_life: float) -> Iterator[World]:
    made = World(plans, max_life=max_life)
    try:
        yield made
    finally:
        made.close()


def program(plan: ServerPlan, max_life: float) -> tuple[str, ...]:
    module = ("-m", "benchmarks.soak.server", "--name", plan.name, "--era", plan.era)
    return (sys.executable, *module, "--max-life", str(max_life))


def _marked(mark: bytes) -> Iterator[tuple[int, str]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if mark in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                    command = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if command:  # a zombie has none, and holds nothing
                        yield int(entry), command.strip()
            except OSError:
                continue
