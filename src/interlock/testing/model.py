"""A language model that follows a script.

Owns: ScriptedModel, which plays samplings through the port that real adapters use.
Never: judges the requests it sees; they are recorded for the test to judge.
"""

from collections.abc import AsyncIterator

from interlock.testing.script import (
    DEFAULT_USAGE,
    Call,
    Fail,
    Give,
    ModelStep,
    Sampling,
    Say,
    Script,
    Wait,
)
from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    EntryCompleted,
    ModelEvent,
    ModelRequest,
    SamplingCompleted,
    TextDelta,
    Usage,
)
from interlock.vocabulary.errors import ModelFailed


class ScriptedModel:
    """A model (port `Model`) whose n-th sampling is the n-th argument.

    A sampling is a step, a sequence of steps, or a function of the ModelRequest that returns
    them. A request beyond the script raises ModelFailed.

        ScriptedModel(
            [Call("mcp__a__one"), Call("mcp__b__two", {"n": 1})],   # two calls in parallel
            lambda request: Say(f"{len(request.entries)} entries so far"),
        )
    """

    def __init__(
        self,
        *samplings: Sampling[ModelStep, ModelRequest],
        name: str = "scripted",
        provider: str = "scripted",
        usage: Usage | None = DEFAULT_USAGE,
    ) -> None:
        self._script: Script[ModelStep, ModelRequest] = Script(samplings)
        self._name = name
        self._provider = provider
        self._usage = usage
        self._requests: list[ModelRequest] = []

    def __repr__(self) -> str:
        return f"<ScriptedModel {self._name!r}: {self._script!r}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        return self._provider

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """What the model was asked, in order."""
        return tuple(self._requests)

    @property
    def remaining(self) -> int:
        """How many samplings were not asked for yet."""
        return self._script.remaining

    async def sample(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self._requests.append(request)
        steps = self._script.take(request)
        if steps is None:
            raise ModelFailed(
                f"the scripted model has no answer left after {self._script.played}; add one to the script"
            )
        for step in steps:
            async for event in self._play(step):
                yield event
        yield SamplingCompleted(usage=self._usage, response_id=f"scripted-{len(self._requests)}")

    async def _play(self, step: ModelStep) -> AsyncIterator[ModelEvent]:
        match step:
            case Say():
                for piece in step.pieces():
                    yield TextDelta(text=piece)
                yield EntryCompleted(entry=AssistantEntry(text=step.text))
            case Call():
                call_id = self._script.name(step)
                yield EntryCompleted(entry=CallEntry(call_id=call_id, name=step.name, arguments=step.arguments_text()))
            case Give():
                yield EntryCompleted(entry=step.entry)
            case Wait():
                await step.gate.wait()
            case Fail():
                raise step.error
