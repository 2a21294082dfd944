"""What is measured, of whom, and what must come out.

Owns: the subjects, the rows and the goals.
Never: measures anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.environments import HERE

Unit = Literal["µs", "ms", "KiB"]
ServerKind = Literal["reference", "tiny", "http"]
MEGABYTE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class SubjectInfo:
    """Who is measured: the module of that name in benchmarks/subjects, in which environment it runs."""

    title: str
    environment: str = HERE
    package: str = ""


SUBJECTS: Mapping[str, SubjectInfo] = {
    "floor": SubjectInfo(title="floor", package="orjson"),
    "connection": SubjectInfo(title="Interlock Connection", package="interlock"),
    "step": SubjectInfo(title="Interlock step.call", package="interlock"),
    "recorded": SubjectInfo(title="Connection between two bare inserts"),
    "sqlite": SubjectInfo(title="two bare SQLite inserts"),
    "sdk": SubjectInfo(title="MCP SDK Client", environment="peers", package="mcp"),
    "fastmcp": SubjectInfo(title="FastMCP", environment="peers", package="fastmcp"),
    "openai_agents": SubjectInfo(title="OpenAI Agents", environment="peers", package="openai-agents"),
    "pydantic_ai": SubjectInfo(title="pydantic-ai", environment="peers", package="pydantic-ai-slim"),
    "langchain": SubjectInfo(title="LangChain, held", environment="langchain", package="langchain-mcp-adapters"),
}
OURS = ("connection", "step")
PEERS = ("sdk", "fastmcp", "openai_agents", "pydantic_ai", "langchain")
EVERYBODY = ("floor", *OURS, *PEERS)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: `rounds` rounds of `measure` for each of `subjects`, in turns.

    `servers` of `server` are started by each subject with `options`; an http server is started once for all of them.
    """

    name: str
    title: str
    measure: str
    unit: Unit = "ms"
    parameters: Mapping[str, object] = field(default_factory=dict)
    server: ServerKind = "reference"
    servers: int = 1
    options: tuple[str, ...] = ()
    subjects: tuple[str, ...] = EVERYBODY
    rounds: int = 12


def connecting(servers: int, rounds: int) -> Row:
    return Row(
        name=f"connect-{servers}",
        title=f"connect {servers} stdio server{'s' if servers > 1 else ''} and list their tools",
        measure="connecting",
        server="tiny",
        servers=servers,
        rounds=rounds,
    )


def tools(count: int, rounds: int) -> tuple[Row, Row]:
    options = ("--tools", str(count), "--page-size", "1000")
    return (
        Row(
            name=f"tools-{count}",
            title=f"list and convert {count:,} tools",
            measure="listing",
            parameters={"tools": count},
            options=options,
            subjects=tuple(name for name in EVERYBODY if name != "step"),
            rounds=rounds,
        ),
        Row(
            name=f"refresh-{count}",
            title=f"read {count:,} tools again after one changed",
            measure="refreshing",
            options=options,
            subjects=tuple(name for name in EVERYBODY if name != "step"),
            rounds=rounds,
        ),
    )


def payload(kind: str, megabytes: int, rounds: int) -> Row:
    size = megabytes * MEGABYTE
    return Row(
        name=f"{kind}-{megabytes}",
        title=f"read a {kind} of {megabytes} MB",
        measure="reading",
        parameters={"uri": f"bench://{kind}/{size}", "size": size},
        subjects=tuple(name for name in EVERYBODY if name != "step"),  # a Step shows its model a few KiB of it
        rounds=rounds,
    )


ROWS: tuple[Row, ...] = (
    Row(
        name="call",
        title="one call after another, stdio",
        measure="calls",
        unit="µs",
        subjects=(*EVERYBODY, "recorded", "sqlite"),
        rounds=25,
    ),
    Row(name="flight", title="100 calls in flight, stdio", measure="in_flight", rounds=15),
    Row(
        name="flight-20",
        title="100 calls in flight that take 20 ms each, stdio",
        measure="in_flight",
        options=("--delay-milliseconds", "20"),
    ),
    Row(
        name="across-50",
        title="one call of each of 50 stdio servers at once",
        measure="in_flight",
        parameters={"count": 50},
        server="tiny",
        servers=50,
    ),
    connecting(1, 15),
    connecting(10, 12),
    connecting(50, 10),
    *tools(1000, 10),
    *tools(10_000, 5),
    *(payload(kind, size, rounds) for kind in ("text", "blob") for size, rounds in ((1, 10), (10, 5), (50, 2))),
    Row(name="http-call", title="one call after another, HTTP", measure="calls", unit="µs", server="http", rounds=25),
    Row(name="http-flight", title="100 calls in flight, HTTP", measure="in_flight", server="http"),
    Row(
        name="http-flight-20",
        title="100 calls in flight that take 20 ms each, HTTP",
        measure="in_flight",
        server="http",
        options=("--delay-milliseconds", "20"),
        parameters={"times": 1},
        rounds=8,
    ),
    Row(
        name="memory",
        title="memory of each idle connection",
        measure="memory",
        unit="KiB",
        server="tiny",
        servers=51,
        rounds=1,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program that is started and ends: `arguments` for the interpreter of `environment`."""

    name: str
    arguments: tuple[str, ...]
    environment: str = HERE
    base: str = "python"


COMMANDS: tuple[Command, ...] = (
    Command(name="python", arguments=("-c", "pass")),
    Command(name="python, asyncio", arguments=("-c", "import asyncio")),
    Command(name="interlock --help", arguments=("-m", "interlock", "--help")),
    Command(name="import interlock", arguments=("-c", "import interlock")),
    Command(name="import interlock, Host", arguments=("-c", "from interlock import Host")),
    Command(name="import mcp", arguments=("-c", "import mcp"), environment="peers"),
    Command(name="import fastmcp", arguments=("-c", "from fastmcp import Client"), environment="peers"),
    Command(name="import agents.mcp", arguments=("-c", "import agents.mcp"), environment="peers"),
    Command(name="import pydantic_ai.mcp", arguments=("-c", "import pydantic_ai.mcp"), environment="peers"),
    Command(
        name="import langchain_mcp_adapters",
        arguments=("-c", "import langchain_mcp_adapters.client"),
        environment="langchain",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Goal:
    """`subject` takes at most `limit` times what `beside` takes together (subjects with their factors), in `row`."""

    row: str
    subject: str
    beside: Mapping[str, float]
    limit: float


GOALS: tuple[Goal, ...] = (
    Goal(row="call", subject="connection", beside={"floor": 1}, limit=1.8),
    Goal(row="call", subject="connection", beside={"sdk": 1}, limit=0.45),
    Goal(row="call", subject="step", beside={"recorded": 1}, limit=2.0),
    Goal(row="call", subject="step", beside={"connection": 1, "sqlite": 1}, limit=2.0),
    Goal(row="flight", subject="connection", beside={"sdk": 1}, limit=0.3),
    Goal(row="tools-10000", subject="connection", beside={"sdk": 1}, limit=0.6),
    Goal(row="text-10", subject="connection", beside={"floor": 1}, limit=1.3),
    Goal(row="connect-50", subject="connection", beside={"sdk": 1}, limit=0.6),
    Goal(row="http-call", subject="connection", beside={"sdk": 1}, limit=0.8),
    Goal(row="http-flight", subject="connection", beside={"sdk": 1}, limit=0.6),
    Goal(row="http-flight-20", subject="connection", beside={"sdk": 1}, limit=0.6),
)
