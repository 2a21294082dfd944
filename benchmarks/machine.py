"""The machine in words: what a reader needs to place the figures, and nothing that names it."""

import os
import platform
from pathlib import Path


def in_words() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GiB of memory, "
        f"{platform.system()} {platform.release().split('-')[0]}, loopback and pipes only"
    )


def load() -> float:
    """How many processes wanted to run in the last minute."""
    return os.getloadavg()[0]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
