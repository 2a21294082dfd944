"""What went wrong at a model's endpoint, in one sentence.

Owns: the check of an address, and the wording of ModelFailed: which model, which endpoint, what it said, what to do.
Never: lets a key or another secret of the provider into a sentence.

`facts["kind"]` of a ModelFailed: "key", "unreachable", "refused", "limited", "broken", "idle", "nonsense",
"failed", "overloaded", "incomplete", "filtered" or "too_much"; `facts["status"]` is the HTTP status, if any.
"""

from urllib.parse import urlsplit, urlunsplit

from interlock.configuration.values import ProviderConfig
from interlock.models.dialect import Stopped
from interlock.vocabulary.errors import InvalidRequest, ModelFailed
from interlock.vocabulary.secret import Secret, masked, reveal

QUOTE_LIMIT = 500
"""Characters of a provider's message that are repeated."""

REPEATABLE = {"broken", "idle", "overloaded"}
"""Kinds after which the same request is sent again, when nothing of the answer was passed on yet."""


class Failures:
    """Makes the errors of one model at one endpoint; `key` is what was sent as a key."""

    def __init__(self, model: str, provider: ProviderConfig, key: Secret | None) -> None:
        self._model = model
        self._provider = provider
        sent = (key, provider.base_url, *provider.http_headers.values(), *provider.query_params.values())
        self._secrets = [value for value in sent if isinstance(value, Secret)]
        self._key = key
        self._endpoint = shown(provider)

    def unreachable(self, reason: str) -> ModelFailed:
        return self._failed(
            "unreachable",
            f"cannot reach the model endpoint {self._endpoint}: {reason}; check base_url and that it is running",
        )

    def refused(self, status: int, message: str) -> ModelFailed:
        """An HTTP status above 399, after the retries that it allows."""
        quoted = self._quoted(message)
        match status:
            case 401 | 403:
                source = f" from {self._key.source}" if self._key is not None else ""
                text = f"the model endpoint {self._endpoint} refused the key{source} (status {status}): {quoted}"
                return self._failed("refused", f"{text}; check the key", status)
            case 404:
                text = f"the model endpoint {self._endpoint} does not know the model {self._model} or the path"
                return self._failed("refused", f"{text} (status 404): {quoted}; check model and base_url", status)
            case 429:
                text = f"the model endpoint {self._endpoint} limits requests (status 429): {quoted}"
                return self._failed("limited", f"{text}; wait, or raise the limit there", status)
            case _ if status >= 500:
                text = f"the model endpoint {self._endpoint} failed (status {status}): {quoted}"
                return self._failed("failed", f"{text}; try again later", status)
        text = f"the model endpoint {self._endpoint} refused the request for model {self._model} (status {status})"
        return self._failed("refused", f"{text}: {quoted}", status)

    def idle(self, seconds: float) -> ModelFailed:
        return self._failed(
            "idle", f"model {self._model} at {self._endpoint} said nothing for {seconds:g} s; try again later"
        )

    def broken(self, reason: str = "") -> ModelFailed:
        because = f" ({self._quoted(reason)})" if reason else ""
        text = f"the answer of model {self._model} at {self._endpoint} broke off before it was complete{because}"
        return self._failed("broken", f"{text}; ask again")

    def nonsense(self, what: str) -> ModelFailed:
        text = f"the model endpoint {self._endpoint} answered with {self._quoted(what)}"
        return self._failed("nonsense", f"{text}; check that base_url is the root of the API (it often ends in /v1)")

    def too_much(self, limit: int) -> ModelFailed:
        return self._failed(
            "too_much", f"the answer of model {self._model} is larger than {limit} bytes and was given up; ask for less"
        )

    def stopped(self, stopped: Stopped) -> ModelFailed:
        reason = self._quoted(stopped.reason)
        match stopped.stop:
            case "broken":
                return self.broken(stopped.reason)
            case "failed" | "overloaded":
                text = f"model {self._model} at {self._endpoint} failed while it answered: {reason}"
            case "incomplete":
                text = f"model {self._model} stopped before its answer was complete ({reason}); raise its limit"
            case "filtered":
                text = f"the content filter of {self._endpoint} withheld the answer ({reason}); change the request"
        return self._failed(stopped.stop, text)

    def _quoted(self, text: str) -> str:
        line = " ".join(masked(text, self._secrets).split())
        return line if len(line) <= QUOTE_LIMIT else line[:QUOTE_LIMIT] + "…"

    def _failed(self, kind: str, text: str, status: int | None = None) -> ModelFailed:
        facts = {} if status is None else {"status": status}
        return ModelFailed(text, kind=kind, model=self._model, **facts)


def check_address(model: str, provider: ProviderConfig) -> None:
    """Raise InvalidRequest unless the base URL is an http or https address."""
    try:
        parts = urlsplit(reveal(provider.base_url))
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port beyond 65535, half an IPv6 address
        usable = False
    if not usable or any(letter.isspace() for letter in reveal(provider.base_url)):
        raise InvalidRequest(
            f"cannot use the model {model}: the base_url of provider {provider.key} is not an http or https address; "
            'write one such as "http://localhost:11434/v1"'
        )


def shown(provider: ProviderConfig) -> str:
    """The base URL without user name, password and query; a secret URL is masked."""
    if isinstance(provider.base_url, Secret):
        return str(provider.base_url)
    parts = urlsplit(provider.base_url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
