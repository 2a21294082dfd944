"""Play scenarios against the library, to see what happens: python -m tests.zoo wire-bom page-cycle-resources

python -m tests.zoo --list                 every scenario that is driven here
python -m tests.zoo --keep FOLDER NAME     keeps what the animal received, in FOLDER/NAME.trace
python -m tests.zoo --config NAME          how to start the animal by hand
"""

# ruff: noqa: T201 -- its output is print

import argparse
import json
import logging
import re
import sys
from dataclasses import asdict
from pathlib import Path

import anyio

from tests.zoo import judging
from tests.zoo.animals import SERVER
from tests.zoo.running import Verdict, run_here
from tests.zoo.scenarios import Scenario, all_scenarios, driven


def main() -> None:
    asked = _arguments()
    if asked.list:
        for name, scenario in driven().items():
            print(f"{name:36} {scenario.script['group']:10} {scenario.words}")
        return
    scenarios = [all_scenarios()[name] for name in asked.names]
    if asked.config:
        for scenario in scenarios:
            port = "" if scenario.transport == "stdio" else " --port 0"
            print(f"{sys.executable} {SERVER} --scenario {scenario.path}{port}")
        return
    if asked.keep is not None:
        asked.keep.mkdir(parents=True, exist_ok=True)
    verdicts = anyio.run(_run, scenarios, asked.keep)
    for scenario, verdict in zip(scenarios, verdicts, strict=True):
        print(json.dumps(asdict(verdict)) if asked.json else _shown(scenario, verdict))
    if not asked.json:
        sys.exit(any(verdict.problems for verdict in verdicts))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo", description="Play scenarios against the library.")
    parser.add_argument("names", nargs="*", help="scenarios, by name")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("--config", action="store_true", help="say how to start the animal by hand")
    parser.add_argument("--json", action="store_true", help="verdicts as JSON")
    parser.add_argument("--keep", type=Path, help="folder for the traces")
    parser.add_argument("--log", action="store_true", help="show what the host logs")
    asked = parser.parse_args()
    if asked.log:
        logging.basicConfig(level=logging.DEBUG)
    return asked


async def _run(scenarios: list[Scenario], keep: Path | None) -> list[Verdict]:
    verdicts = []
    for scenario in scenarios:
        verdict = await run_here(scenario, keep)
        verdict.peak_megabytes = _peak_megabytes()
        verdict.problems += judging.whole_problems(scenario.expect, 0.0, verdict.peak_megabytes)
        verdicts.append(verdict)
    return verdicts


def _peak_megabytes() -> float | None:
    """VmHWM, and not getrusage: that one remembers the process from before the exec."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return round(int(found[1]) / 1024) if found else None


def _shown(scenario: Scenario, verdict: Verdict) -> str:
    lines = [f"{verdict.word.upper()}  {verdict.name}  {verdict.seconds} s  {verdict.peak_megabytes} MB"]
    lines.append(f"    {scenario.words}")
    lines += [f"    {json.dumps(operation, ensure_ascii=False)}" for operation in verdict.operations]
    return "\n".join([*lines, *(f"  ! {problem}" for problem in verdict.problems)])


main()
