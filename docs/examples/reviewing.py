"""A reviewer: a function that sees every question before people do.

It answers, or returns None to pass the question on. When it fails, the question is declined.
"""

import asyncio
import sys

import interlock
from interlock.vocabulary.question import Answer, Approval, Question


def reviewer(question: Question) -> Answer | None:
    match question.subject:
        case Approval(tool=tool) if tool.startswith("delete_"):
            return interlock.Decline("nothing is deleted here")
        case Approval(arguments={"path": str(path)}) if path.startswith("drafts/") and ".." not in path:
            return interlock.Accept()
        case _:
            return None


async def main(config: str, prompt: str) -> None:
    async with interlock.Host.open(config, reviewer=reviewer) as host:
        thread = await host.start_thread()
        turn = await thread.start_turn(prompt)
        print((await turn.finished()).last_message)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
