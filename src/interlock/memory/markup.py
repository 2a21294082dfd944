"""Hidden markup on its way out of a message that streams in.

Owns: which characters people may see, and the bodies of the blocks that they may not (MEM-1, MEM-2).
Never: lets the sizes of the chunks change what comes out: only the text counts.

Two stages in a row. Citations stand anywhere, also inside a line. Plans, which only plan mode hides, begin
and end with a tag alone on its line; they are looked for in what the citations left.
"""

from dataclasses import dataclass, field

OPENER, CLOSER = "<oai-mem-citation>", "</oai-mem-citation>"
PLAN_OPENER, PLAN_CLOSER = "<proposed_plan>", "</proposed_plan>"

BODY_LIMIT = 256 * 1024
"""Characters of all citation bodies of one message together; what is beyond is hidden, and not kept."""

PLAN_LIMIT = 256 * 1024
"""Characters of all plans of one message together; what is beyond is hidden, and not kept."""


class VisibleText:
    """Takes one message piece by piece and gives back what may be shown of it.

    `feed` holds back the longest end that could yet become a tag; `finish` gives it out when it did not.
    """

    def __init__(self, *, plan_mode: bool = False) -> None:
        self._citations = _Citations()
        self._plans = _Plans() if plan_mode else None

    def feed(self, text: str) -> str:
        visible = self._citations.feed(text)
        return visible if self._plans is None else self._plans.feed(visible)

    def finish(self) -> str:
        """The rest, once the message is whole. A block that never ended stays hidden."""
        rest = self._citations.finish()
        return rest if self._plans is None else self._plans.feed(rest) + self._plans.finish()

    def take_plan(self) -> str:
        """What has been hidden of plans since the last time, without their tags."""
        return "" if self._plans is None else self._plans.take()

    @property
    def citations(self) -> tuple[str, ...]:
        """The bodies of the citation blocks so far, in their order; the last may be without its end."""
        return self._citations.bodies


def separate(text: str, *, plan_mode: bool = False) -> tuple[str, tuple[str, ...]]:
    """The visible part of a whole message, and the bodies of its citations."""
    visible = VisibleText(plan_mode=plan_mode)
    shown = visible.feed(text) + visible.finish()
    return shown, visible.citations


TAG_LINE_LIMIT = 200
"""Characters of a line that is a plan's tag, spaces included; a longer line is text."""


@dataclass(slots=True)
class _Citations:
    """Inline blocks, told by their literal tags alone."""

    _held: str = ""
    _inside: bool = False
    _body: list[str] = field(default_factory=list[str])
    _ended: list[str] = field(default_factory=list[str])
    _room: int = BODY_LIMIT

    @property
    def bodies(self) -> tuple[str, ...]:
        return (*self._ended, "".join(self._body)) if self._inside else tuple(self._ended)

    def feed(self, text: str) -> str:
        text, visible = self._held + text, list[str]()
        while True:
            tag = CLOSER if self._inside else OPENER
            before, found, after = text.partition(tag)
            if not found:
                break
            self._take(before, visible)
            self._turn()
            text = after
        held = _length_of_beginning(text, tag)
        self._held = text[len(text) - held :]
        self._take(text[: len(text) - held], visible)
        return "".join(visible)

    def finish(self) -> str:
        held, self._held = self._held, ""
        visible: list[str] = []
        self._take(held, visible)
        return "".join(visible)

    def _take(self, text: str, visible: list[str]) -> None:
        if not self._inside:
            visible.append(text)
        elif self._room:
            self._body.append(text[: self._room])
            self._room -= len(self._body[-1])

    def _turn(self) -> None:
        if self._inside:
            self._ended.append("".join(self._body))
            self._body = []
        self._inside = not self._inside


@dataclass(slots=True)
class _Plans:
    """Blocks between lines that hold nothing but a tag; spaces around the tag do not count."""

    _line: str = ""
    """The beginning of a line that may yet become a tag."""
    _decided: bool = False
    """The line that is being written is no tag."""
    _inside: bool = False
    _hidden: list[str] = field(default_factory=list[str])
    _room: int = PLAN_LIMIT

    def take(self) -> str:
        hidden, self._hidden = self._hidden, []
        return "".join(hidden)

    def feed(self, text: str) -> str:
        return "".join([self._piece(piece) for piece in _pieces_of_lines(text)])

    def finish(self) -> str:
        line, self._line = self._line, ""
        return self._whole(line)

    def _piece(self, piece: str) -> str:
        if self._decided:
            shown = self._shown(piece)
        else:
            self._line += piece
            if not piece.endswith("\n") and self._may_become_tag():
                return ""
            line, self._line = self._line, ""
            shown = self._whole(line)
        self._decided = not piece.endswith("\n")
        return shown

    def _may_become_tag(self) -> bool:
        begun = self._line.strip(_SPACES)
        fits = PLAN_OPENER.startswith(begun) or PLAN_CLOSER.startswith(begun)
        return fits and len(self._line) <= TAG_LINE_LIMIT

    def _whole(self, line: str) -> str:
        match line.strip(_SPACES) if len(line) <= TAG_LINE_LIMIT else "", self._inside:
            case (tag, False) if tag == PLAN_OPENER:
                self._inside = True
            case (tag, True) if tag == PLAN_CLOSER:
                self._inside = False
            case _:
                return self._shown(line)
        return ""

    def _shown(self, text: str) -> str:
        if not self._inside:
            return text
        if self._room:
            self._hidden.append(text[: self._room])
            self._room -= len(self._hidden[-1])
        return ""


_SPACES = " \t\r\n"


def _pieces_of_lines(text: str) -> list[str]:
    """`text` cut after each newline, and nowhere else."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _length_of_beginning(text: str, tag: str) -> int:
    """The length of the longest end of `text` with which `tag` begins; `tag` itself does not stand there."""
    longest = min(len(text), len(tag) - 1)
    return next((length for length in range(longest, 0, -1) if tag.startswith(text[len(text) - length :])), 0)
