"""Servers are asked without a model: what they have, a template filled in, a prompt.

python asking_servers.py interlock.toml library
"""

import asyncio
import sys

import interlock


async def main(config: str, server: str) -> None:
    async with interlock.Host.open(config) as host:
        offers = await host.requests.offers(server)
        print(offers)
        page = await host.list_resources(server)
        print([resource.uri for resource in page.entries])
        (template,) = (await host.list_resource_templates(server)).entries
        read = await host.requests.read_template(server, template.uri_template, {"book": "moss", "number": "7"})
        print(read.contents[0].text)
        if offers.completions:
            print(await host.requests.complete_template(server, template.uri_template, "book", "m"))
        if offers.prompts:
            print(await host.requests.list_prompts(server))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
