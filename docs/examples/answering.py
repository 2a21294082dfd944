"""Answer every question of one turn: forms of servers, and calls that need an approval.

python answering.py interlock.toml "What changed today?"
"""

import asyncio
import sys

import interlock


async def main(config: str, prompt: str) -> None:
    async with interlock.Host.open(config) as host:
        thread = await host.start_thread()
        async with thread.audience() as questions:
            turn = await thread.start_turn(prompt)
            async for question in questions:
                print(f"{question.server} asks: {question.message}")
                answer = await asyncio.to_thread(input, "yes, or anything else for no: ")
                await thread.answer(question.id, interlock.Accept() if answer == "yes" else interlock.Decline())
            print((await turn.finished()).last_message)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
