"""The host's own tools, as a Thread offers and runs them.

Owns: the way from a call to the resources room.
Never: asks for approval (RES-9), or knows what a resource tool does.
"""

from collections.abc import Mapping

from interlock.resources import tools
from interlock.threads.request import CallRequest
from interlock.vocabulary.catalog import BuiltinEntry
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.ports import Respondent
from interlock.vocabulary.question import InputResponses
from interlock.vocabulary.snapshot import Binding, Snapshot
from interlock.vocabulary.tool import ToolResult


def offered(snapshot: Snapshot) -> Mapping[str, BuiltinEntry]:
    """What a Step offers: the resource tools as soon as one server is enabled, whatever its state (RES-1)."""
    return tools.resource_tools(snapshot.servers)


async def run(
    request: CallRequest,
    binding: Binding,
    respondent: Respondent | None = None,
    input_responses: InputResponses | None = None,
) -> ToolResult:
    """Run one; its result is the JSON text of the answer. `respondent` answers what servers ask meanwhile;
    `input_responses` are for a read that an earlier host began (QST-9).

    However a server fails, the effect is "none": what only reads changes nothing.
    """
    try:
        outcome = await tools.run(
            binding, request.public_name, request.text, respondent=respondent, input_responses=input_responses
        )
    except ServerFailed as error:
        error.effect = error.facts["effect"] = "none"
        raise
    return ToolResult(content=({"type": "text", "text": outcome.text},))
