"""Language models behind OpenAI-like endpoints.

    model = interlock.models.responses("gpt-5.5")                              # OPENAI_API_KEY
    model = interlock.models.chat("qwen3", base_url="http://localhost:11434/v1")

Importing this package loads nothing; the `openai` package (extra `openai`) is loaded when a model
is asked for the first time.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.secret import Secret

if TYPE_CHECKING:
    from interlock.configuration.values import ModelConfig, ProviderConfig, WireApi
    from interlock.models.adapter import EndpointModel
    from interlock.models.parts import MediaKind

__all__ = ["chat", "from_configuration", "responses"]


def responses(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | Secret | None = None,
    media: "Collection[MediaKind]" = ("image", "audio", "file"),
) -> "EndpointModel":
    """A model behind the Responses API.

    `base_url` defaults to OpenAI's own, with the key of OPENAI_API_KEY; another endpoint gets a key
    only when `api_key` is given. `media` are the kinds of parts that the model takes; others are
    replaced by a line of text that says so (CAT-10).

    Raises:
        InvalidRequest: the package `openai` is not installed.
    """
    return _model(model, _provider("responses", base_url, api_key), media)


def chat(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | Secret | None = None,
    media: "Collection[MediaKind]" = ("image", "audio", "file"),
) -> "EndpointModel":
    """A model behind Chat Completions, as OpenAI, vLLM, Ollama and many others speak it.

    Arguments and errors as for `responses`. A tool's message can hold text only, so images of a
    tool's output follow in a user's message. For a model that reads text alone say `media=()`.
    """
    return _model(model, _provider("chat", base_url, api_key), media)


def from_configuration(config: "ModelConfig") -> "EndpointModel":
    """The model that `model` and `model_provider` of the configuration name.

    Raises:
        InvalidRequest: no model is named, or the package `openai` is not installed.
    """
    if config.name is None:
        raise InvalidRequest(
            'cannot ask a model: none is named; pass one as `model`, or write model = "NAME" into the configuration'
        )
    return _model(config.name, config.provider, ("image", "audio", "file"))


def _provider(wire_api: "WireApi", base_url: str | None, api_key: str | Secret | None) -> "ProviderConfig":
    from interlock.configuration.values import ProviderConfig

    key = Secret(api_key, "argument api_key") if isinstance(api_key, str) else api_key
    if base_url is None:
        env_key = "OPENAI_API_KEY" if key is None else None
        return ProviderConfig(wire_api=wire_api, bearer_token=key, env_key=env_key)
    return ProviderConfig(
        key="custom", name=base_url, base_url=base_url, wire_api=wire_api, bearer_token=key, env_key=None
    )


def _model(name: str, provider: "ProviderConfig", media: "Collection[MediaKind]") -> "EndpointModel":
    from interlock.models.adapter import EndpointModel

    return EndpointModel(name, provider, media=media)
