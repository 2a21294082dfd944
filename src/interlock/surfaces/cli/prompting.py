"""The real terminal of a dialogue.

Owns: prompts with editing, completion and messages about wrong input, on stderr: stdout is for results.
Never: decides what is asked, or leaves the terminal in another state.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.validation import ValidationError, Validator

from interlock.surfaces.cli.dialogue import Check, NotAnswered, Refused
from interlock.surfaces.cli.output import at_terminal


class PromptTerminal:
    """The port Terminal over stdin and stderr."""

    def __init__(self) -> None:
        self._session: PromptSession[str] = PromptSession(
            input=create_input(sys.stdin), output=create_output(stdout=sys.stderr)
        )

    def show(self, lines: Sequence[str]) -> None:
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()

    async def line(self, label: str, *, default: str, check: Check, words: Sequence[str]) -> str:
        try:
            with _printing_above():
                return await self._session.prompt_async(
                    label,
                    default=default,
                    validator=_Checked(check),
                    validate_while_typing=False,
                    completer=WordCompleter(list(words), sentence=True),
                    complete_while_typing=False,
                    # The command has its own handler for Ctrl-C; here the key is read as a key.
                    handle_sigint=False,
                )
        except KeyboardInterrupt:
            raise NotAnswered from None
        except EOFError:
            raise Refused from None


class _Checked(Validator):
    def __init__(self, check: Check) -> None:
        self._check = check

    def validate(self, document: Document) -> None:
        problem = self._check(document.text)
        if problem is not None:
            raise ValidationError(cursor_position=len(document.text), message=problem)


@contextmanager
def _printing_above() -> Iterator[None]:
    """What is printed meanwhile appears above the prompt; results in a pipe go their own way."""
    if not at_terminal(sys.stdout):
        yield
        return
    with patch_stdout(raw=True):
        yield
