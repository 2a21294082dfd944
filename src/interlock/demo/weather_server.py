"""A server over Streamable HTTP on a listening socket: python -m interlock.demo.weather_server DESCRIPTOR

Owns: the socket that its parent opened and handed over, and a forecast that never changes.
Never: outlives its parent: it ends when its stdin does.
"""

import socket
import sys
import threading

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import TextResource

from interlock.demo.hints import READS

ALMANAC = "Rain on a third of all days, sun on a third, and the last third is fog."

server = MCPServer(
    "weather",
    version="1.0",
    resources=[TextResource(uri="weather://almanac", name="almanac", description="The usual weather.", text=ALMANAC)],
    log_level="ERROR",
)


@server.tool(title="Forecast", annotations=READS, structured_output=False)
def forecast(place: str) -> str:
    """The weather of tomorrow."""
    return f"{place}: dry, with light wind from the west"


def main(number: int) -> None:
    http = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error"))
    threading.Thread(target=_end_with_stdin, args=(http,), daemon=True).start()
    http.run(sockets=[socket.socket(fileno=number)])


def _end_with_stdin(http: uvicorn.Server) -> None:
    sys.stdin.buffer.read()
    http.should_exit = True


if __name__ == "__main__":
    main(int(sys.argv[1]))
