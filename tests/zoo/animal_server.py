# ruff: noqa -- a program of its own, shared with tests of other hosts; kept as it is there
"""A scripted, deliberately misbehaving MCP server (Python 3.11, standard library only).

    python3 zoo_server.py --scenario NAME              stdio animal: speaks on stdin/stdout
    python3 zoo_server.py --scenario NAME --port 0     http animal: prints its URL, serves on 127.0.0.1
    python3 zoo_server.py --list                       every scenario found, one a line
    python3 zoo_server.py --check                      validate every scenario file

Scenarios are looked for in the folders of the environment variable ZOO_PATH, or else in scenarios/ and
shared/ beside this file; --scenario also takes a path.

A scenario is one small JSON file; README.md describes the language.  With --trace FILE (or the
environment variable ZOO_TRACE) everything received and every notable event is appended to FILE as
JSON lines, so a test can check what the host did.  Only the loopback interface is used, every loop
is bounded, and the process ends itself after --max-life seconds (90 unless told).
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
KNOWN = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
ABSENT = object()
RULE_KEYS = {"when", "do", "times", "after", "note"}
WHEN_KEYS = {"rpc", "tool", "params", "event", "http", "path", "header", "any"}
VERBS = {
    "reply",
    "error",
    "send",
    "notify",
    "line",
    "raw",
    "raw_hex",
    "default",
    "sleep",
    "repeat",
    "do",
    "background",
    "hold",
    "reply_held",
    "ask",
    "write",
    "stderr",
    "stderr_flood",
    "exit",
    "kill",
    "close",
    "fork",
    "respond",
    "head",
    "event",
    "end",
    "reset",
    "drop",
    "push",
    "wire",
    "wire_hex",
    "nothing",
    "note",
    "mark",
    "stop_reading",
    "gap",
    "size",
    "at",
    "while_open",
}


# ---------------------------------------------------------------- scenario files


def scenario_dirs() -> list[str]:
    extra = [d for d in os.environ.get("ZOO_PATH", "").split(os.pathsep) if d]
    return extra or [os.path.join(HERE, d) for d in ("scenarios", "shared")]


def find_scenario(name: str) -> str:
    if os.path.sep in name or name.endswith(".json"):
        return name
    for d in scenario_dirs():
        p = os.path.join(d, name + ".json")
        if os.path.exists(p):
            return p
    raise SystemExit(f"zoo_server: no scenario {name!r} in {scenario_dirs()}")


def load(name: str) -> dict:
    with open(find_scenario(name), encoding="utf-8") as f:
        return json.load(f)


def problems_of(sc: dict) -> list[str]:
    """What is wrong with a scenario file (not with the animal)."""
    bad = [f"missing {k!r}" for k in ("name", "group", "transport", "description", "source", "expect") if k not in sc]
    if sc.get("transport") not in ("stdio", "http", "sse"):
        bad.append(f"transport {sc.get('transport')!r}")

    def steps(todo, where):
        if not isinstance(todo, list):
            bad.append(f"{where}: 'do' is not a list")
            return
        for s in todo:
            if not isinstance(s, dict) or not s:
                bad.append(f"{where}: step {s!r}")
                continue
            for k in s:
                if k not in VERBS:
                    bad.append(f"{where}: unknown verb {k!r}")
            for k in ("do",):
                if k in s:
                    steps(s[k], where)
            for k in ("background", "write"):
                if k in s and isinstance(s[k], dict):
                    steps(s[k].get("do", []), where)

    for i, r in enumerate(sc.get("rules", [])):
        for k in r:
            if k not in RULE_KEYS:
                bad.append(f"rule {i}: key {k!r}")
        for k in r.get("when", {}):
            if k not in WHEN_KEYS:
                bad.append(f"rule {i}: when {k!r}")
        steps(r.get("do"), f"rule {i}")
    exp = sc.get("expect", {})
    if not exp.get("words"):
        bad.append("expect.words missing")
    if not exp.get("drive"):
        bad.append("expect.drive missing")
    return bad


# ---------------------------------------------------------------- small helpers


class Trace:
    def __init__(self, path: str | None):
        self.f = open(path, "a", encoding="utf-8") if path else None
        self.lock = threading.Lock()

    def __call__(self, kind: str, **kw) -> None:
        if not self.f:
            return
        with self.lock:
            try:
                self.f.write(json.dumps({"t": round(time.time(), 4), "kind": kind, **kw}) + "\n")
                self.f.flush()
            except ValueError:
                pass


def text_of(v, env: dict) -> str:
    """A text value: a string, or a list of strings and {"times": n, "text": s}."""
    if isinstance(v, list):
        return "".join(text_of(x, env) for x in v)
    if isinstance(v, dict) and "times" in v:
        return text_of(v["text"], env) * int(v["times"])
    return fill(str(v), env, as_json=True)


def lookup(path: str, env: dict):
    cur = env
    for part in path.split("."):
        if isinstance(cur, dict) and part in cur:
            cur = cur[part]
        else:
            return ABSENT
    return cur


def fill(s: str, env: dict, as_json: bool = False) -> str:
    def sub(m):
        v = lookup(m.group(1), env)
        if v is ABSENT:
            return m.group(0)
        return json.dumps(v) if as_json or not isinstance(v, str) else v

    return re.sub(r"\$\{([A-Za-z0-9_.]+)\}", sub, s)


def expand(v, env: dict):
    """Fill in $-variables and the big-value makers inside a JSON value."""
    if isinstance(v, str):
        if v.startswith("$") and re.fullmatch(r"\$[A-Za-z0-9_.]+", v):
            got = lookup(v[1:], env)
            return v if got is ABSENT else got
        return fill(v, env)
    if isinstance(v, list):
        return [expand(x, env) for x in v]
    if isinstance(v, dict):
        if "$text" in v and len(v) == 1:
            return (
                text_of(v["$text"], {k: x for k, x in env.items()}) if not isinstance(v["$text"], str) else v["$text"]
            )
        if "$many" in v and len(v) == 1:
            m = v["$many"]
            return [expand(m["item"], {**env, "i": i}) for i in range(int(m["count"]))]
        if "$union" in v and len(v) == 1:
            out = []
            for part in v["$union"]:
                out.extend(expand(part, env))
            return out
        if "$object" in v and len(v) == 1:
            m = v["$object"]
            return {
                fill(m["key"], {**env, "i": i}): expand(m["value"], {**env, "i": i}) for i in range(int(m["count"]))
            }
        return {k: expand(x, env) for k, x in v.items()}
    return v


def subset(want, got) -> bool:
    if isinstance(want, dict) and want.get("$absent"):
        return got is ABSENT
    if isinstance(want, dict):
        return isinstance(got, dict) and all(subset(x, got.get(k, ABSENT)) for k, x in want.items())
    return want == got and type(want) is type(got)


class Stop(Exception):
    """Ends the steps of one rule."""


# ---------------------------------------------------------------- where bytes go


class Sink:
    """Turns messages into bytes; subclasses say where the bytes go."""

    def __init__(self, engine: "Engine"):
        self.e = engine

    def encode(self, obj) -> bytes:
        # a lone surrogate cannot be UTF-8: fall back to \\u escapes for that message
        try:
            return json.dumps(obj, ensure_ascii=self.e.server.get("ascii", False), separators=(",", ":")).encode()
        except UnicodeEncodeError:
            return json.dumps(obj, separators=(",", ":")).encode()

    def message(self, obj) -> None:
        self.write(self.encode(obj) + self.e.server.get("eol", "\n").encode())

    def write(self, data: bytes) -> None:
        raise NotImplementedError


class StdioSink(Sink):
    lock = threading.RLock()
    first = True

    def write(self, data: bytes) -> None:
        with StdioSink.lock:
            if StdioSink.first and self.e.server.get("bom"):
                data = b"\xef\xbb\xbf" + data
            StdioSink.first = False
            try:
                while data:
                    n = os.write(1, data[:65536])
                    data = data[n:]
            except OSError:
                raise Stop from None


class Capture(Sink):
    def __init__(self, engine, inner: Sink):
        super().__init__(engine)
        self.data = b""
        self.inner = inner

    def message(self, obj) -> None:
        if isinstance(self.inner, HttpSink):
            self.data += self.encode(obj)
        else:
            super().message(obj)

    def write(self, data: bytes) -> None:
        self.data += data


class HttpSink(Sink):
    """One HTTP request and what is sent back on its connection."""

    def __init__(self, engine, conn: socket.socket, req: dict):
        super().__init__(engine)
        self.conn, self.req = conn, req
        self.framing = None  # None until a head was sent
        self.ended = False
        self.close_after = False
        self.lock = threading.RLock()

    def wire(self, data: bytes) -> None:
        try:
            self.conn.sendall(data)
        except OSError:
            self.close_after = self.ended = True
            raise Stop from None

    def head(self, status=200, headers=None, framing="chunked") -> None:
        headers = dict(headers or {})
        reason = {
            200: "OK",
            202: "Accepted",
            204: "No Content",
            400: "Bad Request",
            401: "Unauthorized",
            403: "Forbidden",
            404: "Not Found",
            405: "Method Not Allowed",
            500: "Internal Server Error",
        }.get(status, "X")
        out = [f"HTTP/1.1 {status} {reason}"]
        if framing == "chunked":
            headers.setdefault("Transfer-Encoding", "chunked")
        if framing in ("close", "none"):
            headers.setdefault("Connection", "close")
            self.close_after = True
        for k, v in headers.items():
            for one in v if isinstance(v, list) else [v]:
                if one is not None:
                    out.append(f"{k}: {one}")
        self.framing = framing
        self.wire(("\r\n".join(out) + "\r\n\r\n").encode())

    def write(self, data: bytes) -> None:
        if self.framing is None:
            self.respond({"status": 200, "headers": {"Content-Type": "application/json"}, "bytes": data})
        elif self.framing == "chunked":
            if data:
                self.wire(b"%x\r\n" % len(data) + data + b"\r\n")
        else:
            self.wire(data)

    def respond(self, r: dict) -> None:
        body = r.get("bytes")
        if body is None:
            if "json" in r:
                body = self.encode(r["json"])
            elif "hex" in r:
                body = bytes.fromhex(r["hex"])
            else:
                body = r.get("text", "").encode()
        if r.get("gzip"):
            import gzip

            body = gzip.compress(body)
        headers = dict(r.get("headers", {}))
        if "json" in r and not any(k.lower() == "content-type" for k in headers):
            headers["Content-Type"] = "application/json"
        if r.get("length", True) is True:
            headers.setdefault("Content-Length", len(body))
        elif r.get("length") is not False:
            headers["Content-Length"] = r["length"]
        self.head(r.get("status", 200), headers, "length" if r.get("length", True) is not False else "close")
        self.wire(body)
        self.ended = True

    def open_stream(self) -> None:
        if self.framing is None:
            self.head(
                200,
                {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", **self.e.session_headers(self.req)},
            )

    def sse(self, ev: dict, env: dict) -> None:
        self.open_stream()
        eol = ev.get("eol", "\n")
        lines = []
        for key in ("comment", "event", "id", "retry"):
            if key in ev:
                lines.append((": " if key == "comment" else key + ": ") + str(ev[key]))
        data = ev.get("data")
        if "json" in ev:
            data = self.encode(ev["json"]).decode()
        if ev.get("pretty") and "json" in ev:
            data = json.dumps(ev["json"], indent=1)
        if data is not None:
            for part in str(data).split("\n"):
                lines.append("data: " + part)
        blank = ev.get("blank", True)
        self.write((eol.join(lines) + eol + (eol if blank else "")).encode())

    def message(self, obj) -> None:
        is_answer = isinstance(obj, dict) and ("result" in obj or "error" in obj) and "method" not in obj
        if self.framing is None and is_answer and self.e.http.get("mode", "json") == "json":
            self.respond({"json": obj, "headers": self.e.session_headers(self.req)})
        else:
            self.sse({"event": "message", "json": obj}, {})

    def end(self) -> None:
        if not self.ended:
            if self.framing == "chunked":
                self.wire(b"0\r\n\r\n")
            self.ended = True

    def finish(self, msg) -> None:
        """After the steps: close the response in the ordinary way."""
        if self.ended:
            return
        if self.framing is not None:
            self.end()
        elif isinstance(msg, dict) and "method" in msg and "id" in msg:
            self.wait_gone()  # a request that nobody answered: stay silent
        else:
            self.respond({"status": 202})

    def wait_gone(self) -> None:
        stop = time.time() + self.e.life
        while time.time() < stop:
            r, _, _ = select.select([self.conn], [], [], 0.5)
            if r:
                try:
                    if not self.conn.recv(1, socket.MSG_PEEK):
                        break
                except OSError:
                    break
                time.sleep(0.2)
        self.close_after = self.ended = True


class StreamSink(Sink):
    """Messages go out on another (long-lived) SSE response: legacy SSE and GET streams."""

    def __init__(self, engine, stream: HttpSink):
        super().__init__(engine)
        self.stream = stream

    def message(self, obj) -> None:
        with self.stream.lock:
            self.stream.sse({"event": "message", "json": obj}, {})

    def write(self, data: bytes) -> None:
        with self.stream.lock:
            self.stream.write(data)


# ---------------------------------------------------------------- the engine


class Engine:
    def __init__(self, sc: dict, trace: Trace, life: float):
        self.sc, self.trace, self.life = sc, trace, life
        self.server = sc.get("server", {})
        self.http = self.server.get("http", {})
        self.modern = sc.get("era") == "modern"
        self.rules = sc.get("rules", [])
        self.hits = [0] * len(self.rules)
        self.lock = threading.RLock()
        self.held: dict[str, tuple] = {}
        self.answers: dict[str, tuple[threading.Event, list]] = {}
        self.asked = 0
        self.base = ""
        self.sessions = 0
        self.streams: list[HttpSink] = []
        self.stopped_reading = threading.Event()
        self.last_answer = None
        self.last_id = None

    # ---- rules
    def pick(self, facts: dict):
        with self.lock:
            for i, r in enumerate(self.rules):
                if not self.matches(r.get("when", {}), facts):
                    continue
                self.hits[i] += 1
                n = self.hits[i]
                if n <= r.get("after", 0):
                    continue
                if "times" in r and n > r.get("after", 0) + r["times"]:
                    continue
                if n <= r.get("after", 0) + 3:
                    self.trace("rule", index=i, n=n)
                return r, n
        return None, 0

    def matches(self, w: dict, f: dict) -> bool:
        for k, want in w.items():
            if k == "any":
                continue
            if k == "rpc" and f.get("rpc") != want:
                return False
            if k == "event" and f.get("event") != want:
                return False
            if k == "tool" and not (f.get("rpc") == "tools/call" and (f.get("params") or {}).get("name") == want):
                return False
            if k == "params" and not subset(want, f.get("params") or {}):
                return False
            if k == "http" and f.get("http") != want:
                return False
            if k == "path" and f.get("path") != want:
                return False
            if k == "header":
                for h, hv in want.items():
                    got = f.get("headers", {}).get(h.lower())
                    if hv is None and got is not None or hv is True and got is None:
                        return False
                    if isinstance(hv, str) and got != hv:
                        return False
        if "event" not in w and f.get("event") and "any" not in w:
            return False
        if f.get("http") and "http" not in w and "rpc" not in w and "tool" not in w:
            return False
        return True

    def env(self, msg, n=0, extra=None) -> dict:
        msg = msg if isinstance(msg, dict) else {}
        params = msg.get("params") if isinstance(msg.get("params"), dict) else {}
        if msg.get("id") is not None and "method" in msg:
            self.last_id = msg["id"]
        e = {
            "id": msg.get("id"),
            "n": n,
            "base": self.base,
            "params": params,
            "answer": self.last_answer,
            "lastid": self.last_id,
            "token": (params.get("_meta") or {}).get("progressToken")
            if isinstance(params.get("_meta"), dict)
            else None,
            "arg": params.get("arguments") if isinstance(params.get("arguments"), dict) else {},
        }
        e.update(extra or {})
        return e

    def event(self, name: str, sink: Sink) -> bool:
        rule, n = self.pick({"event": name})
        if rule:
            self.steps(rule["do"], None, sink, self.env(None, n))
        return rule is not None

    # ---- one incoming JSON-RPC message
    def incoming(self, msg, sink: Sink, facts: dict | None = None) -> None:
        if isinstance(msg, list):
            for m in msg:
                self.incoming(m, sink, facts)
            return
        if not isinstance(msg, dict):
            return
        if "method" not in msg:
            self.trace("answer", msg=msg)
            with self.lock:
                self.last_answer = msg
                slot = self.answers.get(json.dumps(msg.get("id")))
            if slot:
                slot[1].append(msg)
                slot[0].set()
            return
        f = dict(facts or {})
        f.update(rpc=msg.get("method"), params=msg.get("params"))
        rule, n = self.pick(f)
        if rule is None:
            self.answer_well(msg, sink)
        else:
            self.steps(rule["do"], msg, sink, self.env(msg, n))

    # ---- steps
    def steps(self, todo: list, msg, sink: Sink, env: dict) -> None:
        for s in todo:
            self.step(s, msg, sink, env)

    def step(self, s: dict, msg, sink: Sink, env: dict) -> None:
        mid = msg.get("id") if isinstance(msg, dict) else None
        if "reply" in s:
            sink.message({"jsonrpc": "2.0", "id": mid, "result": expand(s["reply"], env)})
        elif "error" in s:
            sink.message({"jsonrpc": "2.0", "id": mid, "error": expand(s["error"], env)})
        elif "send" in s:
            sink.message(expand(s["send"], env))
        elif "notify" in s:
            sink.message({"jsonrpc": "2.0", **expand(s["notify"], env)})
        elif "push" in s:
            for st in list(self.streams):
                try:
                    StreamSink(self, st).message(expand(s["push"], env))
                except Stop:
                    pass
        elif "line" in s:
            sink.write(text_of(s["line"], env).encode("utf-8", "surrogatepass") + self.server.get("eol", "\n").encode())
        elif "raw" in s:
            sink.write(text_of(s["raw"], env).encode("utf-8", "surrogatepass"))
        elif "raw_hex" in s:
            sink.write(bytes.fromhex(s["raw_hex"]))
        elif "wire" in s:
            sink.wire(text_of(s["wire"], env).encode("utf-8", "surrogatepass"))
        elif "wire_hex" in s:
            sink.wire(bytes.fromhex(s["wire_hex"]))
        elif "default" in s:
            if msg is not None:
                self.answer_well(msg, sink)
            elif isinstance(sink, HttpSink):
                self.http_well(sink)
        elif "sleep" in s:
            time.sleep(min(float(s["sleep"]), self.life))
        elif "repeat" in s:
            for i in range(int(s["repeat"])):
                self.steps(s["do"], msg, sink, {**env, "i": i})
                if s.get("gap"):
                    time.sleep(s["gap"])
        elif "while_open" in s:
            stop = time.time() + min(float(s["while_open"]), self.life)
            i = 0
            while time.time() < stop:
                self.steps(s["do"], msg, sink, {**env, "i": i})
                i += 1
                time.sleep(s.get("gap", 0.2))
        elif "background" in s:
            b = s["background"]
            # on HTTP a message sent later can only travel on an open stream
            bs = sink

            def later():
                time.sleep(b.get("after", 0))
                try:
                    self.steps(b["do"], msg, bs, env)
                except Stop:
                    pass

            threading.Thread(target=later, daemon=True).start()
        elif "hold" in s:
            self.held[s["hold"]] = (msg, sink)
        elif "reply_held" in s:
            r = s["reply_held"]
            m, k = self.held.pop(r["name"], (None, sink))
            if m is not None:
                body = {"error": expand(r["error"], env)} if "error" in r else {"result": expand(r["result"], env)}
                k.message({"jsonrpc": "2.0", "id": m.get("id"), **body})
        elif "ask" in s:
            self.ask(s["ask"], sink, env)
        elif "write" in s:
            w = s["write"]
            cap = Capture(self, sink)
            self.steps(w["do"], msg, cap, env)
            data, cuts = cap.data, []
            if "at" in w:
                cuts = [c if c >= 0 else len(data) + c for c in w["at"]]
            elif "at_text" in w:
                pos = data.find(w["at_text"].encode())
                cuts = [pos + 1] if pos >= 0 else []
            else:
                cuts = list(range(int(w["size"]), len(data), int(w["size"])))
            prev = 0
            for c in [*cuts, len(data)]:
                if isinstance(sink, HttpSink) and sink.framing is None:
                    sink.head(
                        200, {"Content-Type": w.get("type", "application/json"), **self.session_headers(sink.req)}
                    )
                sink.write(data[prev:c])
                prev = c
                time.sleep(w.get("gap", 0))
        elif "stderr" in s:
            os.write(2, text_of(s["stderr"], env).encode())
        elif "stderr_flood" in s:
            left, line = (
                int(s["stderr_flood"]["bytes"]),
                (s["stderr_flood"].get("line", "zoo noise ") * 8 + "\n").encode(),
            )
            while left > 0:
                left -= os.write(2, line[: max(1, min(left, len(line)))])
        elif "exit" in s:
            self.trace("event", event="exit", code=s["exit"])
            os._exit(int(s["exit"]))
        elif "kill" in s:
            os.kill(os.getpid(), getattr(signal, s["kill"]))
            time.sleep(1)
        elif "close" in s:
            os.close({"stdin": 0, "stdout": 1, "stderr": 2}[s["close"]])
        elif "fork" in s:
            self.fork(s["fork"])
        elif "respond" in s:
            sink.respond(expand(s["respond"], env))
        elif "head" in s:
            h = expand(s["head"], env)
            sink.head(h.get("status", 200), h.get("headers"), h.get("framing", "chunked"))
        elif "event" in s:
            sink.sse(expand(s["event"], env), env)
        elif "end" in s:
            sink.end()
        elif "reset" in s:
            sink.conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sink.conn.close()
            sink.ended = sink.close_after = True
            raise Stop
        elif "drop" in s:
            try:
                sink.conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sink.ended = sink.close_after = True
            raise Stop
        elif "mark" in s:
            self.trace("mark", name=fill(str(s["mark"]), env))
        elif "stop_reading" in s:
            self.stopped_reading.set()
        elif "nothing" in s or "note" in s:
            pass
        else:
            raise SystemExit(f"zoo_server: unknown step {s!r}")

    def ask(self, a: dict, sink: Sink, env: dict) -> None:
        with self.lock:
            self.asked += 1
            rid = expand(a["id"], env) if "id" in a else f"zoo-{self.asked}"
        ev: tuple[threading.Event, list] = (threading.Event(), [])
        self.answers[json.dumps(rid)] = ev
        out = {"jsonrpc": "2.0", "id": rid, "method": a["method"]}
        if "params" in a:
            out["params"] = expand(a["params"], env)
        sink.message(out)
        wait = float(a.get("timeout", 10))
        if wait and not ev[0].wait(min(wait, self.life)):
            self.trace("event", event="no_answer", id=rid, method=a["method"])
        env["answer"] = ev[1][0] if ev[1] else None

    def fork(self, f: dict) -> None:
        pid = os.fork()
        if pid:
            self.trace("event", event="fork", pid=pid)
            return
        for name in f.get("ignore", []):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        if "SIGTERM" not in f.get("ignore", []):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if f.get("setsid"):
            os.setsid()
        keep = f.get("keep", ["stdout"])
        for fd, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
            if name not in keep:
                n = os.open(os.devnull, os.O_RDWR)
                os.dup2(n, fd)
        stop = time.time() + min(float(f.get("seconds", 20)), 60)
        while time.time() < stop:
            time.sleep(0.2)
        os._exit(0)

    # ---- the well-behaved server underneath
    def tools(self) -> list:
        base = [
            {
                "name": "echo",
                "description": "Say it back.",
                "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
            }
        ]
        if "tools" in self.server:
            return expand(self.server["tools"], self.env(None))
        return base + expand(self.server.get("add_tools", []), self.env(None))

    def answer_well(self, msg: dict, sink: Sink) -> None:
        method, mid, params = msg.get("method"), msg.get("id"), msg.get("params")
        params = params if isinstance(params, dict) else {}
        if mid is None:
            return
        sv, extra, cache = self.server, {}, {}
        if self.modern:
            extra = {"resultType": "complete"}
            cache = {"ttlMs": 0, "cacheScope": "private"}
        caps = sv.get("capabilities", {"tools": {"listChanged": True}, "resources": {"listChanged": True}})
        info = {"name": "zoo-" + self.sc["name"], "version": "1.0"}

        def err(code, text, data=None):
            e = {"code": code, "message": text}
            if data is not None:
                e["data"] = data
            sink.message({"jsonrpc": "2.0", "id": mid, "error": e})

        def ok(result):
            sink.message({"jsonrpc": "2.0", "id": mid, "result": result})

        if method == "initialize":
            if self.modern:
                return err(
                    -32022,
                    "Unsupported protocol version",
                    {"supported": [MODERN], "requested": params.get("protocolVersion")},
                )
            asked = params.get("protocolVersion")
            result = {
                "protocolVersion": asked if asked in KNOWN else KNOWN[-1],
                "capabilities": caps,
                "serverInfo": info,
            }
            for k, v in sv.get("initialize", {}).items():
                if v == {"$absent": True}:
                    result.pop(k, None)
                else:
                    result[k] = expand(v, self.env(msg))
            return ok(result)
        if method == "server/discover":
            if not self.modern:
                return err(-32601, "Method not found")
            result = {
                "supportedVersions": [MODERN],
                "capabilities": caps,
                **extra,
                **cache,
                "_meta": {"io.modelcontextprotocol/serverInfo": info},
            }
            for k, v in sv.get("discover", {}).items():
                if v == {"$absent": True}:
                    result.pop(k, None)
                else:
                    result[k] = expand(v, self.env(msg))
            return ok(result)
        if method == "ping":
            return ok({**extra})
        if method == "tools/list":
            return ok({"tools": self.tools(), **extra, **cache})
        if method == "tools/call":
            name, args = params.get("name"), params.get("arguments") or {}
            text = str(args.get("text", "pong")) if name == "echo" else f"called {name}"
            return ok({"content": [{"type": "text", "text": text}], "isError": False, **extra})
        if method == "resources/list":
            res = expand(
                sv.get("resources", [{"uri": "zoo://a", "name": "a", "mimeType": "text/plain"}]), self.env(msg)
            )
            return ok({"resources": res, **extra, **cache})
        if method == "resources/templates/list":
            return ok({"resourceTemplates": expand(sv.get("templates", []), self.env(msg)), **extra, **cache})
        if method == "resources/read":
            uri = params.get("uri")
            return ok(
                {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"text of {uri}"}], **extra, **cache}
            )
        return err(-32601, f"Method not found: {method}")

    # ---- HTTP defaults
    def session_headers(self, req: dict) -> dict:
        if self.modern or not self.http.get("session", True):
            return {}
        body = req.get("json")
        if isinstance(body, dict) and body.get("method") == "initialize":
            with self.lock:
                self.sessions += 1
            return {"Mcp-Session-Id": f"zoo-session-{self.sessions}"}
        return {}

    def http_well(self, sink: HttpSink) -> None:
        req = sink.req
        if self.sc["transport"] == "sse":
            if req["method"] == "GET":
                sink.open_stream()
                self.streams.append(sink)
                sink.sse({"event": "endpoint", "data": self.http.get("endpoint", "/messages?sid=1")}, {})
                sink.wait_gone()
                if sink in self.streams:
                    self.streams.remove(sink)
                return
            if req["method"] == "POST" and self.streams:
                sink.respond({"status": 202, "text": "Accepted"})
                self.incoming(req["json"], StreamSink(self, self.streams[-1]))
                return
            sink.respond({"status": 405, "headers": {"Allow": "GET, POST"}})
            return
        if req["path"] != "/mcp":
            sink.respond({"status": 404, "text": "no such page"})
        elif req["method"] == "GET":
            if self.http.get("get") == "stream":
                sink.open_stream()
                self.streams.append(sink)
                sink.write(b": open\n\n")
                sink.wait_gone()
                if sink in self.streams:
                    self.streams.remove(sink)
            else:
                sink.respond({"status": 405, "headers": {"Allow": "POST, DELETE"}})
        elif req["method"] == "DELETE":
            sink.respond({"status": 200})
        else:
            sink.respond({"status": 405})


# ---------------------------------------------------------------- stdio


def run_stdio(e: Engine) -> None:
    sink = StdioSink(e)
    inbox: queue.Queue = queue.Queue()
    ignore = e.server.get("ignore", [])

    def reader():
        buf = b""
        while not e.stopped_reading.is_set():
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            if not data:
                break
            buf += data
            while b"\n" in buf:
                line, buf = buf.split(b"\n", 1)
                if not line.strip():
                    continue
                try:
                    msg = json.loads(line)
                except ValueError:
                    e.trace("in", bad=line[:500].decode("latin-1"))
                    continue
                e.trace(
                    "in",
                    msg=msg
                    if len(line) < 20000
                    else {"method": msg.get("method"), "id": msg.get("id"), "size": len(line)},
                )
                if isinstance(msg, dict) and "method" not in msg:
                    e.incoming(msg, sink)
                else:
                    inbox.put(msg)
        if not e.stopped_reading.is_set():
            e.trace("event", event="stdin_eof")
            inbox.put(None)

    def handle(m):
        try:
            e.incoming(m, sink)
        except Stop:
            pass

    try:
        e.event("start", sink)
    except Stop:
        pass
    threading.Thread(target=reader, daemon=True).start()
    while True:
        m = inbox.get()
        if m is None:
            try:
                e.event("stdin_eof", sink)
            except Stop:
                pass
            if "stdin_eof" in ignore:
                while True:
                    time.sleep(1)
            os._exit(0)
        if e.server.get("concurrent"):
            threading.Thread(target=handle, args=(m,), daemon=True).start()
        else:
            handle(m)


# ---------------------------------------------------------------- http


def read_request(conn: socket.socket, buf: bytes):
    while b"\r\n\r\n" not in buf:
        data = conn.recv(65536)
        if not data:
            return None, b""
        buf += data
        if len(buf) > 1 << 20:
            return None, b""
    head, buf = buf.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers: dict[str, str] = {}
    for ln in lines[1:]:
        k, _, v = ln.partition(":")
        headers[k.strip().lower()] = v.strip()
    body = b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while True:
            while b"\r\n" not in buf:
                more = conn.recv(65536)
                if not more:
                    return None, b""
                buf += more
            size, buf = buf.split(b"\r\n", 1)
            n = int(size.split(b";")[0], 16)
            while len(buf) < n + 2:
                more = conn.recv(65536)
                if not more:
                    return None, b""
                buf += more
            body += buf[:n]
            buf = buf[n + 2 :]
            if n == 0:
                break
    else:
        n = int(headers.get("content-length", 0))
        while len(buf) < n:
            more = conn.recv(65536)
            if not more:
                return None, b""
            buf += more
        body, buf = buf[:n], buf[n:]
    path, _, q = target.partition("?")
    req = {"method": method, "path": path, "query": q, "headers": headers, "body": body}
    try:
        req["json"] = json.loads(body) if body else None
    except ValueError:
        req["json"] = None
    return req, buf


def serve_conn(e: Engine, conn: socket.socket) -> None:
    buf = b""
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while True:
            req, buf = read_request(conn, buf)
            if req is None:
                break
            shown = {k: v for k, v in req["headers"].items() if k != "authorization"}
            if "authorization" in req["headers"]:
                shown["authorization"] = req["headers"]["authorization"][:12]
            e.trace(
                "http",
                method=req["method"],
                path=req["path"],
                query=req["query"],
                headers=shown,
                msg=req["json"],
                form=req["body"].decode("latin-1")[:2000] if req["json"] is None else None,
            )
            sink = HttpSink(e, conn, req)
            msg = req["json"] if req["method"] == "POST" else None
            facts = {"http": req["method"], "path": req["path"], "headers": req["headers"]}
            q = {k: v[0] for k, v in urllib.parse.parse_qs(req["query"]).items()}
            if isinstance(msg, dict):
                facts.update(rpc=msg.get("method"), params=msg.get("params"))
            try:
                rule, n = e.pick(facts)
                if rule is not None and isinstance(msg, dict) and "method" in msg:
                    out: Sink = sink
                    if e.sc["transport"] == "sse" and not any(
                        k in st for st in rule["do"] for k in ("respond", "head", "reset", "drop")
                    ):
                        sink.respond({"status": 202, "text": "Accepted"})
                        if e.streams:
                            out = StreamSink(e, e.streams[-1])
                    e.steps(rule["do"], msg, out, e.env(msg, n, {"header": req["headers"], "q": q}))
                elif rule is not None:
                    e.steps(rule["do"], None, sink, e.env(None, n, {"header": req["headers"], "q": q}))
                elif isinstance(msg, (dict, list)) and e.sc["transport"] == "http" and req["path"] == "/mcp":
                    e.incoming(msg, sink)
                else:
                    e.http_well(sink)
                sink.finish(msg)
            except Stop:
                pass
            if sink.close_after or req["headers"].get("connection", "").lower() == "close":
                break
    except (OSError, ValueError):
        pass
    finally:
        try:
            conn.close()
        except OSError:
            pass


def run_http(e: Engine, port: int, port_file: str | None) -> None:
    ls = socket.socket()
    ls.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ls.bind(("127.0.0.1", port))
    ls.listen(64)
    e.base = f"http://127.0.0.1:{ls.getsockname()[1]}"
    url = e.base + ("/sse" if e.sc["transport"] == "sse" else e.http.get("path", "/mcp"))
    if port_file:
        with open(port_file + ".tmp", "w") as f:
            f.write(url)
        os.replace(port_file + ".tmp", port_file)
    os.write(1, f"ZOO {url}\n".encode())

    class NoSink(Sink):
        def write(self, data):
            pass

    e.event("start", NoSink(e))
    while True:
        conn, _ = ls.accept()
        threading.Thread(target=serve_conn, args=(e, conn), daemon=True).start()


# ---------------------------------------------------------------- main


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--scenario")
    ap.add_argument("--port", type=int, default=0)
    ap.add_argument("--port-file")
    ap.add_argument("--trace", default=os.environ.get("ZOO_TRACE"))
    ap.add_argument("--max-life", type=float, default=90)
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--check", action="store_true")
    a = ap.parse_args()
    if a.list or a.check:
        bad = 0
        seen = {}
        for d in scenario_dirs():
            for fn in sorted(os.listdir(d)) if os.path.isdir(d) else []:
                if not fn.endswith(".json"):
                    continue
                sc = json.load(open(os.path.join(d, fn), encoding="utf-8"))
                if a.list:
                    print(f"{sc['name']:44} {sc['transport']:6} {sc['group']:12} {sc['description'][:90]}")
                probs = problems_of(sc)
                if sc["name"] != fn[:-5]:
                    probs.append("name differs from the file's name")
                seen[sc["name"]] = 1
                for p in probs:
                    bad += 1
                    print(f"{fn}: {p}", file=sys.stderr)
        if a.check:
            print(f"{len(seen)} scenarios, {bad} problems")
        raise SystemExit(1 if bad else 0)
    if not a.scenario:
        ap.error("--scenario is needed")
    sc = load(a.scenario)
    trace = Trace(a.trace)
    life = min(a.max_life, float(sc.get("max_life", a.max_life)))
    e = Engine(sc, trace, life)
    trace("event", event="start", pid=os.getpid(), scenario=sc["name"])

    def on_term(*_):
        trace("event", event="sigterm")
        if "SIGTERM" not in e.server.get("ignore", []):
            os._exit(143)

    signal.signal(signal.SIGTERM, on_term)
    parent = os.getppid()

    def end_of_life():
        stop = time.time() + life
        while time.time() < stop:
            time.sleep(0.5)
            # an HTTP animal has no stdin to tell it that its keeper is gone
            if sc["transport"] != "stdio" and os.getppid() != parent:
                os._exit(98)
        trace("event", event="end_of_life")
        os._exit(99)

    threading.Thread(target=end_of_life, daemon=True).start()
    if sc["transport"] == "stdio":
        t = threading.Thread(target=run_stdio, args=(e,), daemon=True)
    else:
        t = threading.Thread(target=run_http, args=(e, a.port, a.port_file), daemon=True)
    t.start()
    while True:  # the main thread stays free for signals
        t.join(0.5)
        if not t.is_alive():
            os._exit(97)


if __name__ == "__main__":
    main()
