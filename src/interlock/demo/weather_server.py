"""A server over Streamable HTTP on a listening socket: python -m interlock.demo.weather_server DESCRIPTOR

Owns: the socket that its parent opened and handed over, and a forecast that never changes.
Never: outlives its parent: it ends when its stdin does, also while it is still loading what it needs.
"""

import os
import socket
import sys
import threading

ALMANAC = "Rain on a third of all days, sun on a third, and the last third is fog."


def main(number: int) -> None:
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    _serve(socket.socket(fileno=number))


def _serve(listening: socket.socket) -> None:
    import uvicorn  # these take a second or two to load, in which the parent may end
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.resources import TextResource

    from interlock.demo.hints import READS

    almanac = TextResource(uri="weather://almanac", name="almanac", description="The usual weather.", text=ALMANAC)
    server = MCPServer("weather", version="1.0", resources=[almanac], log_level="ERROR")
    server.tool(title="Forecast", annotations=READS, structured_output=False)(forecast)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listening])


def forecast(place: str) -> str:
    """The weather of tomorrow."""
    return f"{place}: dry, with light wind from the west"


def _end_with_stdin() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(0)  # there is nothing to keep, and waiting for open streams would outlast the parent


if __name__ == "__main__":
    main(int(sys.argv[1]))
