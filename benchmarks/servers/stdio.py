"""The reference server over stdio: one blocking loop, all that can be answered at once in one write.

python -m benchmarks.servers.stdio [--tools N] [--page-size N] [--delay-milliseconds N]
"""

import argparse
import heapq
import json
import os
import select
import time

from benchmarks.servers.answers import Answers, from_arguments, response


class Delayed:
    """Answers that are due later."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, bytes]] = []
        self._count = 0

    def add(self, seconds: float, data: bytes) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time.monotonic() + seconds, self._count, data))

    def due(self) -> bytes:
        now, ready = time.monotonic(), []
        while self._heap and self._heap[0][0] <= now:
            ready.append(heapq.heappop(self._heap)[2])
        return b"".join(ready)

    def patience(self) -> float | None:
        return max(0.0, self._heap[0][0] - time.monotonic()) if self._heap else None


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def handle(line: bytes, answers: Answers, delayed: Delayed) -> bytes:
    """What can be sent at once in answer to `line`."""
    message = json.loads(line)
    if "method" not in message or "id" not in message:
        return b""
    answer = answers.to(message)
    data = response(message["id"], answer) + b"\n" + answer.after
    if not answer.delay:
        return data
    delayed.add(answer.delay, data)
    return b""


def main() -> None:
    answers, _ = from_arguments(argparse.ArgumentParser())
    delayed, unfinished = Delayed(), b""
    while True:
        readable, _, _ = select.select([0], [], [], delayed.patience())
        if readable:
            chunk = os.read(0, 1 << 20)
            if not chunk:
                return
            *lines, unfinished = (unfinished + chunk).split(b"\n")
            write(b"".join(handle(line, answers, delayed) for line in lines))
        write(delayed.due())


if __name__ == "__main__":
    main()
