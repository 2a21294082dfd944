"""Your own loop: Interlock offers the tools and runs the calls, you talk to the model.

python own_loop.py interlock.toml gpt-5.5 "What time is it in Rome?"
"""

import asyncio
import sys
from typing import Any

import openai

import interlock


async def main(config: str, model: str, prompt: str) -> None:
    client = openai.AsyncOpenAI()
    messages: list[Any] = [{"role": "user", "content": prompt}]
    async with interlock.Host.open(config) as host:
        thread = await host.start_thread()
        while True:
            async with thread.step() as step:  # one frozen view: what is offered is what is called
                answer = await client.chat.completions.create(model=model, messages=messages, tools=offered(step))
                message = answer.choices[0].message
                messages.append(message)
                if not message.tool_calls:
                    print(message.content)
                    return
                for call in message.tool_calls:
                    result = await step.call(call.id, call.function.name, call.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})


def offered(step: interlock.Step) -> Any:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
        }
        for tool in step.tools
    ]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
