"""Interlock's loop: one turn with the configured model, and what happens meanwhile.

python one_turn.py interlock.toml "What time is it in Rome?"
"""

import asyncio
import sys

import interlock
from interlock.vocabulary.event import CallEnded, StoredEvent, TurnEnded


async def main(config: str, prompt: str) -> None:
    async with interlock.Host.open(config) as host:
        for problem in host.problems:
            print(f"warning: {problem}", file=sys.stderr)
        thread = await host.start_thread()
        turn = await thread.start_turn(prompt)
        async for stored in thread.events():  # facts that are stored already, in order
            match stored:
                case StoredEvent(event=CallEnded(item=item)):
                    print(f"{item.server} {item.tool}: {item.status}")
                case StoredEvent(event=TurnEnded()):
                    break
        print((await turn.finished()).last_message)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
