"""The chart: one panel for each row, bars from nothing to the slowest subject.

Owns: the drawing, as SVG text.
Never: chooses what is shown beyond the figures that it is given.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from benchmarks.figures import Figures
from benchmarks.report import SCALE, number
from benchmarks.rows import OURS, SUBJECTS, Row

COLUMNS, PANEL_WIDTH, BAR, GAP, TOP = 2, 560, 15, 5, 34
LABEL, VALUE = 205, 80
COLOURS = {"floor": "#9aa5b1", "ours": "#0b6e4f", "peer": "#c9a66b"}


def drawn(results: Mapping[str, Mapping[str, Figures]], rows: Sequence[Row]) -> str:
    """The whole picture."""
    shown = [row for row in rows if row.name in results]
    heights = [_height(len(_bars(results[row.name], row))) for row in shown]
    parts, y = list[str](), 20.0
    for first in range(0, len(shown), COLUMNS):
        for column, row in enumerate(shown[first : first + COLUMNS]):
            parts += panel(_bars(results[row.name], row), row, x=20 + column * (PANEL_WIDTH + 20), y=y)
        y += max(heights[first : first + COLUMNS])
    width = 20 + COLUMNS * (PANEL_WIDTH + 20)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y:.0f}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{width}" height="{y:.0f}" fill="#ffffff"/>', *parts, "</svg>"]) + "\n"


def panel(bars: Sequence[tuple[str, float]], row: Row, *, x: float, y: float) -> Iterator[str]:
    longest = max((value for _, value in bars), default=1.0) or 1.0
    title = escape(f"{row.title} ({row.unit})")
    yield f'<text x="{x}" y="{y + 14}" font-size="14" font-weight="bold" fill="#222222">{title}</text>'
    for place, (name, value) in enumerate(bars):
        top = y + TOP - 10 + place * (BAR + GAP)
        length = max(1.0, value / longest * (PANEL_WIDTH - LABEL - VALUE))
        middle = top + BAR - 3.5
        yield f'<text x="{x}" y="{middle}" font-size="11" fill="#222222">{escape(SUBJECTS[name].title)}</text>'
        yield f'<rect x="{x + LABEL}" y="{top}" width="{length:.1f}" height="{BAR}" fill="{_colour(name)}"/>'
        end = x + LABEL + length + 5
        yield f'<text x="{end:.1f}" y="{middle}" font-size="11" fill="#222222">{number(value)}</text>'


def _bars(found: Mapping[str, Figures], row: Row) -> list[tuple[str, float]]:
    if row.unit == "KiB":
        return [(name, figures.more["KiB each"]) for name, figures in found.items() if figures.more]
    return [(name, figures.median * SCALE[row.unit]) for name, figures in found.items() if figures.median is not None]


def _height(bars: int) -> float:
    return TOP + bars * (BAR + GAP) + 14


def _colour(name: str) -> str:
    if name in OURS:
        return COLOURS["ours"]
    return COLOURS["floor" if name in ("floor", "sqlite", "recorded") else "peer"]
