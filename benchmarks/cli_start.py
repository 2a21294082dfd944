"""What starting the command line costs beside a bare interpreter.

    python -m benchmarks.cli_start [rounds]

Every command is started in turns with `python -c pass`, in one run, so that a busy machine slows both. The figures
are ratios of medians, of CPU time (user and system, which other processes do not lengthen) and of wall time.
`interlock --help` may take 8 times a bare start, a list of servers where there is no file 12 times: it needs typer, and
neither pydantic nor an event loop.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

ROUNDS = 15
LIMITS = {"interlock --help": 8.0, "interlock mcp list, no server": 12.0}

INTERLOCK = (sys.executable, "-m", "interlock")
BARE = (sys.executable, "-c", "pass")
COMMANDS = {
    "python -c 'import typer'": (sys.executable, "-c", "import typer"),
    "interlock --help": (*INTERLOCK, "--help"),
    "interlock mcp --help": (*INTERLOCK, "mcp", "--help"),
    "interlock exec --help": (*INTERLOCK, "exec", "--help"),
    "interlock mcp list, no server": (*INTERLOCK, "mcp", "list"),
    "interlock threads list, none": (*INTERLOCK, "threads", "list"),
}


@dataclass(slots=True)
class Times:
    """Seconds of each start."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def take(self, command: tuple[str, ...], environment: dict[str, str]) -> None:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.wall.append(time.perf_counter() - began)
        self.cpu.append(usage.ru_utime + usage.ru_stime)
        assert process.returncode == 0, command


def main(rounds: int = ROUNDS) -> None:
    bare, times = Times(), {name: Times() for name in COMMANDS}
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "INTERLOCK_HOME": home}
        for _ in range(rounds):
            bare.take(BARE, environment)
            for name, command in COMMANDS.items():
                times[name].take(command, environment)
    base_cpu, base_wall = statistics.median(bare.cpu), statistics.median(bare.wall)
    print(f"python -c pass: {base_cpu * 1000:.0f} ms CPU, {base_wall * 1000:.0f} ms wall")
    for name, taken in times.items():
        cpu, wall = statistics.median(taken.cpu) / base_cpu, statistics.median(taken.wall) / base_wall
        print(f"{name:32} {cpu:5.1f} x CPU  {wall:5.1f} x wall")
    for name, limit in LIMITS.items():
        ratio = statistics.median(times[name].cpu) / base_cpu
        assert ratio <= limit, f"{name} takes {ratio:.1f} times a bare start"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
