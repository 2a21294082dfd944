"""How long programs take from their start to their end: imports and `--help`, in turns like the rows."""

import os
import random
import subprocess
import time
from typing import Any

from benchmarks.environments import ROOT, python_of
from benchmarks.rows import COMMANDS
from benchmarks.running import Rounds


def run_commands(*, seed: int, rounds: int) -> dict[str, Rounds]:
    """`rounds` rounds of every command, after one that fills the caches."""
    order = random.Random(f"{seed} commands")
    results = {command.name: Rounds() for command in COMMANDS}
    for number in range(-1, rounds):
        commands = list(COMMANDS)
        order.shuffle(commands)
        for command in commands:
            sample = time_once([python_of(command.environment), *command.arguments])
            if number >= 0:
                results[command.name].samples[number] = sample
    return results


def time_once(command: list[str]) -> dict[str, Any]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return {"seconds": [seconds], "cpu": usage.ru_utime + usage.ru_stime, "more": {}}
