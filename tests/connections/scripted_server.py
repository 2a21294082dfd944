"""A small stdio MCP server that does what the script in its argument says.

    python scripted_server.py '{"METHOD": [STEP, ...], "@start": [...], "@eof": [...]}'

Steps, in order: {"result": R} {"error": E} answer; {"send": M} any message; {"raw": TEXT} {"hex": H} bytes;
{"flood": {"times", "message"}}; {"stderr": TEXT}; {"fork": {"setsid", "keep", "ignore"}} leaves a grandchild and sends
its pid as a notification; {"exit": n} {"kill": signal} {"close": fd} {"sleep": s} {"ignore": ["SIGTERM", "eof"]}
{"stop_reading": 1}; {"until": METHOD} waits until such a message came in, or with "answer" an answer to us;
{"ask": M} is a request of ours, its answer comes back as the notification "test/answered".
"<<text*n>>" stands for n times that text; "$id" in a message is the request's id.

What no rule names is answered as a well-behaved server of 2025-11-25 would: "tools/call" echoes its arguments,
"test/seen" returns every message that came in, "test/environment" the environment. Only the standard library is used,
so that it starts fast.
"""

import json
import os
import re
import signal
import sys
import time
from typing import Any

SEEN: list[Any] = []
LATER: list[Any] = []
"""Read and not handled yet."""
IGNORED: set[str] = set()
EVERY_PROCESS_ENDS_AFTER = 240


def put(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def send(message: Any) -> None:
    put(json.dumps(message).encode() + b"\n")


def filled(value: Any, request_id: Any) -> Any:
    if isinstance(value, str):
        value = re.sub(r"<<(.+?)\*(\d+)>>", lambda match: match[1] * int(match[2]), value, flags=re.DOTALL)
    if value == "$id":
        return request_id
    if isinstance(value, dict):
        return {key: filled(inner, request_id) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, request_id) for inner in value]
    return value


def fork(how: dict[str, Any]) -> None:
    reading, writing = os.pipe()
    if os.fork() == 0:
        if how.get("setsid"):
            os.setsid()
        for name in ("SIGTERM", "SIGHUP"):
            if name in how.get("ignore", ()):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        for descriptor in (0, 1, 2):
            if not how.get("keep"):
                os.close(descriptor)
        os.write(writing, b"%d" % os.getpid())
        os.close(writing)
        time.sleep(EVERY_PROCESS_ENDS_AFTER)
        os._exit(0)
    os.close(writing)
    pid = int(os.read(reading, 32))
    os.close(reading)
    send({"jsonrpc": "2.0", "method": "test/forked", "params": {"pid": pid}})


def do(step: dict[str, Any], request_id: Any) -> None:
    verb, value = next(iter(step.items()))
    value = filled(value, request_id)
    match verb:
        case "result" | "error":
            send({"jsonrpc": "2.0", "id": request_id, verb: value})
        case "send" | "ask":
            send(value)
        case "raw":
            put(value.replace("$id", str(request_id)).encode())
        case "hex":
            put(bytes.fromhex(value))
        case "flood":
            put(b"".join(json.dumps(value["message"]).encode() + b"\n" for _ in range(value["times"])))
        case "stderr":
            sys.stderr.write(value)
            sys.stderr.flush()
        case "fork":
            fork(value)
        case "exit":
            os._exit(value)
        case "kill":
            os.kill(os.getpid(), getattr(signal, value))
        case "close":
            os.close(value)
        case "sleep":
            time.sleep(value)
        case "ignore":
            IGNORED.update(value)
            for name in IGNORED & {"SIGTERM", "SIGINT"}:
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        case "until":
            while not any(message.get("method", "answer") == value for message in [*SEEN, *LATER]):
                LATER.append(json.loads(sys.stdin.buffer.readline()))
        case "stop_reading":
            time.sleep(EVERY_PROCESS_ENDS_AFTER)


def default(message: dict[str, Any]) -> Any:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
            }
        case "tools/call":
            return {"content": [{"type": "text", "text": json.dumps(message["params"].get("arguments"))}]}
        case "test/seen":
            return {"seen": SEEN}
        case "test/environment":
            return {"environment": dict(os.environ)}
        case "ping":
            return {}
    return None


def handle(message: dict[str, Any], script: dict[str, Any]) -> None:
    SEEN.append(message)
    method = message.get("method")
    if method is None:
        send({"jsonrpc": "2.0", "method": "test/answered", "params": message})
    elif method in script:
        for step in script[method]:
            do(step, message.get("id"))
    elif "id" in message:
        result = default(message)
        error = {"code": -32601, "message": "Method not found"}
        send({"jsonrpc": "2.0", "id": message["id"]} | ({"error": error} if result is None else {"result": result}))


def main() -> None:
    signal.alarm(EVERY_PROCESS_ENDS_AFTER)
    script = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    for step in script.get("@start", ()):
        do(step, None)
    for line in sys.stdin.buffer:
        LATER.append(json.loads(line))
        while LATER:
            handle(LATER.pop(0), script)
    for step in script.get("@eof", ()):
        do(step, None)
    if "eof" in IGNORED:
        time.sleep(EVERY_PROCESS_ENDS_AFTER)


main()
