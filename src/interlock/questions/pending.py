"""Questions that wait for an answer.

Owns: the table from (server, question id) to what was asked and the one waiter for its answer.
Never: waits, judges policy, or keeps a waiter that was claimed or withdrawn.

Two identities (QST-1): the server's own request id stays with the connection that received it and is not
known here; the host's id is made here, and says nothing about the server's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.question import Question

Waiter = TypeVar("Waiter")


@dataclass(frozen=True, slots=True)
class Held(Generic[Waiter]):
    """One open question with its waiter."""

    question: Question
    waiter: Waiter


@dataclass(slots=True)
class Pending(Generic[Waiter]):
    """At most one answer reaches each question, and only under its own server's name.

    with pending.holding(question, waiter):
        ...                                       # tell the audience, then wait
    pending.claim(question.server, question.id)   # elsewhere: the answer came, and fits
    """

    _held: dict[tuple[str, str], Held[Waiter]] = field(default_factory=dict)
    _servers: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Pending open={len(self._held)}>"

    def __len__(self) -> int:
        return len(self._held)

    @property
    def questions(self) -> tuple[Question, ...]:
        """The open ones, oldest first."""
        return tuple(held.question for held in self._held.values())

    @contextmanager
    def holding(self, question: Question, waiter: Waiter) -> Iterator[None]:
        """Keep the question claimable while the block runs; leaving withdraws this one and no other (QST-5).

        Raises:
            ValueError: a question is open under the same id; the host made it twice.
        """
        key = (question.server, question.id)
        if question.id in self._servers:
            raise ValueError(f"question {question.id!r} is open already")
        held = self._held[key] = Held(question, waiter)
        self._servers[question.id] = question.server
        try:
            yield
        finally:
            if self._held.get(key) is held:
                self._remove(*key)

    def find(self, question_id: str) -> Question | None:
        """The open question of that id, whichever server asks it."""
        server = self._servers.get(question_id)
        return None if server is None else self._held[server, question_id].question

    def look(self, server: str, question_id: str) -> Held[Waiter]:
        """What is held; it stays open.

        Raises:
            InvalidRequest: as `claim`.
        """
        return self._get(server, question_id)

    def claim(self, server: str, question_id: str) -> Waiter:
        """Take the waiter out; the caller now owes it the answer.

        Raises:
            InvalidRequest: nobody waits under this server and id: never asked, answered already, or no
                longer needed.
        """
        held = self._get(server, question_id)
        self._remove(server, question_id)
        return held.waiter

    def _remove(self, server: str, question_id: str) -> None:
        del self._held[server, question_id], self._servers[question_id]

    def _get(self, server: str, question_id: str) -> Held[Waiter]:
        try:
            return self._held[server, question_id]
        except KeyError:
            raise not_open(server, question_id) from None


def not_open(server: str, question_id: str) -> InvalidRequest:
    """What an answer without a question is told."""
    return InvalidRequest(
        f"question {question_id!r} of server {server!r} is not open: "
        "it was answered already, is no longer needed, or was never asked",
        question_id=question_id,
        server=server,
    )
