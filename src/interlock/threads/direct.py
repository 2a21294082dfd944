"""What an application asks a server itself: not a model's act, so no item and no history.

Owns: which request each method is, its deadline, the filters of a server (CAT-8).
Never: asks for approval (the application decided), or holds a connection for longer than a request.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from interlock.resources.templates import Variable, expand, variable_names
from interlock.vocabulary.errors import InvalidRequest, NotPermitted
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import OnProgress, Respondent
from interlock.vocabulary.resource import (
    Completion,
    Listing,
    Page,
    Prompt,
    PromptResult,
    Resource,
    ResourceRead,
    ResourceTemplate,
)
from interlock.vocabulary.server import Offers, ServerConfig
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import Tool, ToolResult

Holding = Callable[[str], AbstractAsyncContextManager[ServerView]]
"""Keeps the connection of a server alive while the block runs; see `usable` for what it raises."""


def usable(configs: Mapping[str, ServerConfig], server: str) -> ServerConfig:
    """The configuration of `server`.

    Raises:
        InvalidRequest: there is no such server.
        NotPermitted: it is disabled.
    """
    config = configs.get(server)
    if config is None:
        raise InvalidRequest(f"there is no server {server!r}; configured are: {', '.join(configs) or 'none'}")
    if not config.enabled:
        raise NotPermitted(f"server {server!r} is disabled; set enabled = true in [mcp_servers.{server}]")
    return config


class DirectRequests:
    """Requests to one server at a time. All raise ServerFailed as the port Connection says.

    InvalidRequest: there is no such server. NotPermitted: it is disabled. `holding` keeps a
    connection for several requests. `respondent` answers what servers ask meanwhile; without one they are told no.
    """

    def __init__(self, holding: Holding, respondent: Respondent | None = None) -> None:
        self.holding = holding
        self._respondent = respondent

    async def list_tools(self, server: str) -> Listing[Tool]:
        """All tools that the filters let through, app-only ones included."""
        async with self.holding(server) as view:
            listing = await view.connection.list_tools(timeout=view.config.startup_timeout)
        return Listing(
            entries=tuple(tool for tool in listing.entries if view.config.allows(tool.name)), bad=listing.bad
        )

    async def call_tool(
        self,
        server: str,
        tool: str,
        arguments: JsonObject | None = None,
        *,
        on_progress: OnProgress | None = None,
        meta: JsonObject | None = None,
    ) -> ToolResult:
        """Call a tool by its remote name. NotPermitted: the filters of the server keep it out."""
        async with self.holding(server) as view:
            if not view.config.allows(tool):
                raise NotPermitted(
                    f"tool {tool!r} of server {server!r} is kept out by enabled_tools or disabled_tools "
                    f"in [mcp_servers.{server}]"
                )
            return await view.connection.call_tool(
                tool,
                arguments,
                timeout=view.config.tool_timeout,
                on_progress=on_progress,
                meta=meta,
                respondent=self._respondent,
            )

    async def list_resources(self, server: str, *, cursor: str | None = None) -> Page[Resource]:
        """One page; its `next_cursor` continues."""
        async with self.holding(server) as view:
            return await view.connection.list_resources(cursor=cursor, timeout=view.config.tool_timeout)

    async def list_resource_templates(self, server: str, *, cursor: str | None = None) -> Page[ResourceTemplate]:
        """One page; its `next_cursor` continues."""
        async with self.holding(server) as view:
            return await view.connection.list_resource_templates(cursor=cursor, timeout=view.config.tool_timeout)

    async def read_resource(self, server: str, uri: str, *, meta: JsonObject | None = None) -> ResourceRead:
        """Read `uri` exactly as it is given (RPC-2: no trimming, no gate)."""
        async with self.holding(server) as view:
            return await view.connection.read_resource(
                uri, timeout=view.config.tool_timeout, meta=meta, respondent=self._respondent
            )

    async def list_prompts(self, server: str) -> Listing[Prompt]:
        async with self.holding(server) as view:
            return await view.connection.list_all_prompts(timeout=view.config.tool_timeout)

    async def get_prompt(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> PromptResult:
        async with self.holding(server) as view:
            return await view.connection.get_prompt(
                name, dict(arguments or {}), timeout=view.config.tool_timeout, respondent=self._respondent
            )

    async def complete(
        self, server: str, reference: JsonObject, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Completion:
        """Completions of an argument; `reference` as in the specification (ref/prompt, ref/resource)."""
        async with self.holding(server) as view:
            return await view.connection.complete(
                reference, argument, value, context=dict(context or {}), timeout=view.config.tool_timeout
            )

    async def offers(self, server: str) -> Offers:
        """Which of tools, resources, prompts and completions the server has (RES-11); starts it where it must."""
        async with self.holding(server) as view:
            await view.connection.ready(view.config.startup_timeout)
            return view.connection.report().offers or Offers()

    async def read_template(
        self,
        server: str,
        template: str,
        variables: Mapping[str, Variable],
        *,
        meta: JsonObject | None = None,
    ) -> ResourceRead:
        """Read what `template` (RFC 6570) expands to. InvalidRequest: it is no template, or has no such variable."""
        return await self.read_resource(server, expand(template, variables), meta=meta)

    async def complete_template(
        self, server: str, template: str, variable: str, value: str = "", given: Mapping[str, str] | None = None
    ) -> Completion:
        """What the server proposes for a variable of its template that begins with `value`; `given` are the others.

        Raises:
            InvalidRequest: the template has no such variable.
        """
        names = variable_names(template)
        if variable not in names:
            known = ", ".join(names) or "none"
            raise InvalidRequest(f"the template {template!r} has no variable {variable!r}; it has {known}")
        return await self.complete(server, {"type": "ref/resource", "uri": template}, variable, value, given)

    async def complete_prompt(
        self, server: str, prompt: str, argument: str, value: str = "", given: Mapping[str, str] | None = None
    ) -> Completion:
        """What the server proposes for an argument of its prompt that begins with `value`; `given` are the others."""
        return await self.complete(server, {"type": "ref/prompt", "name": prompt}, argument, value, given)
