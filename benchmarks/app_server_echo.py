"""The floor of a request: an echo of JSON over the standard streams, in bare asyncio.

python -m benchmarks.app_server_echo
"""

import asyncio
import json
import sys


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    while line := await reader.readline():
        message = json.loads(line)
        if "id" in message:
            writer.write(json.dumps({"id": message["id"], "result": message.get("params")}).encode() + b"\n")
            await writer.drain()


if __name__ == "__main__":
    asyncio.run(main())
