"""What a call gave, for the model and for the item.

Owns: the two projections of one result: parts cut to the model's budget, a record kept within its own bound (RES-10).
Never: changes what the server said beyond that.
"""

from interlock.catalog.result import result_parts
from interlock.history.clip import clip_parts, clip_result
from interlock.threads.lifecycle import Answer
from interlock.vocabulary.tool import ToolResult


def answer(result: ToolResult, limit: int) -> Answer:
    """The answer of a call; `limit` is the bytes of text that the model is shown."""
    return Answer(result=clip_result(result), content=clip_parts(result_parts(result), limit))
