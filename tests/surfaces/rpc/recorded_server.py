"""An MCP server that answers as a recorded one did: python recorded_server.py FILE.jsonl

Owns: finding the recorded answer to a request by its method and parameters, and what the server asked before it.
Never: answers what was never asked; such a request is an unknown method.
"""

import json
import sys
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def key(message: Message) -> str:
    params = {k: v for k, v in (message.get("params") or {}).items() if k != "_meta" and v is not None}
    known = {} if message["method"] == "initialize" else params
    return json.dumps([message["method"], known], sort_keys=True)


def conversations(lines: list[Message]) -> dict[str, list[list[Message]]]:
    """For each request all that the server sent until its answer, the answer last; one list for each time."""
    found: dict[str, list[list[Message]]] = {}
    for place, line in enumerate(lines):
        request = line["msg"]
        if line["dir"] != "in" or "method" not in request or "id" not in request:
            continue
        sent = []
        for later in lines[place + 1 :]:
            if later["dir"] == "out" and later["pid"] == line["pid"]:
                message = later["msg"]
                sent.append(message)
                if "method" not in message and message.get("id") == request["id"]:
                    found.setdefault(key(request), []).append(sent)
                    break
    return found


def send(message: Message) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def told(answer: Message) -> Message:
    """What these servers say of the answer to their question."""
    text = json.dumps({name: answer[name] for name in ("result", "error") if name in answer})
    return {"content": [{"type": "text", "text": text}]}


def main(file: Path) -> None:
    known = conversations([json.loads(line) for line in file.read_text().splitlines()])
    waiting: dict[str, tuple[Any, bool]] = {}
    asked = 0
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            request_id, _ = waiting.pop(str(message["id"]))
            send({"jsonrpc": "2.0", "id": request_id, "result": told(message)})
        elif "id" in message:
            times = known.get(key(message))
            if not times:
                error = {"code": -32601, "message": f"never asked: {message['method']}"}
                send({"jsonrpc": "2.0", "id": message["id"], "error": error})
                continue
            *before, answer = times.pop(0) if len(times) > 1 else times[0]
            questions = [sent for sent in before if sent.get("method") == "elicitation/create"]
            for question in questions:
                asked += 1
                waiting[f"ask-{asked}"] = (message["id"], True)
                send({**question, "id": f"ask-{asked}"})
            if not questions:
                send({**answer, "id": message["id"]})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
