"""One picture of task times, a strip for each strategy: a bar for each task, the longest on top.

What the others wait for the longest task is a pale field: a level strategy has next to none.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from common.core.units import format_seconds
from common.tuning.levelness import replayed_seconds

CORES = (2, 16, 100)
# A task that takes more times the median one is late, and gets the colour of a warning.
LEVEL_RATIO = 2.0
# In pixels.
WIDTH, LEFT, TOP = 1120, 172, 118
BARS_WIDTH, STRIP_HEIGHT, STRIP_STEP, FOOT = 400, 72, 120, 62
COLUMNS = (842, 916, 990, 1084)
_MOST_BARS, _GAP_FROM = 4 * STRIP_HEIGHT, 3.0
_LATE_HEIGHT, _LATE_AT_LEAST = 4.0, 12.0
_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933 }
  .title { font-size: 19px; font-weight: 600 } .name { font-size: 15px; font-weight: 600 }
  .soft { fill: #616e7c } .strong { font-weight: 600 } .end { text-anchor: end } .mid { text-anchor: middle }
  .page { fill: #ffffff } .bars { fill: #7fa8d9 } .level { fill: #1f6fb2 } .uneven { fill: #c2410c }
  .wait { fill: #fbe3d6 } .grid { stroke: #e4e7eb } .rule { stroke: #9aa5b1 }
  .median { stroke: #1f2933; stroke-dasharray: 3 3 }
"""
_DARK = """
  text { fill: #e6e8eb } .soft { fill: #9aa5b1 } .page { fill: #14181d } .bars { fill: #3f6a9c }
  .level { fill: #7db7ee } .uneven { fill: #fb923c }
  .wait { fill: #4a2a1a } .grid { stroke: #2b323a } .rule { stroke: #616e7c }
  .median { stroke: #e6e8eb }
"""


@dataclass(frozen=True)
class _Strip:
    """One strategy: the seconds of its tasks, the longest first, and the numbers beside them."""

    name: str
    seconds: Sequence[float]
    walls: Mapping[int, float]
    work_seconds: float | None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def ratio(self) -> float:
        """The longest task over the median one; below a millisecond counts as one."""
        return max(self.seconds[0], 0.001) / max(self.median, 0.001)


def draw(
    strategies: Mapping[str, Sequence[float]],
    path: Path,
    *,
    title: str = "Task times of the join",
    walls: Mapping[str, Mapping[int, float]] | None = None,
    cpu_seconds: Mapping[str, float] | None = None,
) -> None:
    """Write the picture as SVG; it follows the reader's choice of a light or a dark page.

    Args:
        strategies: Name to the seconds of each task of the stage that is compared, in any order.
        path: The file.
        title: What is shown.
        walls: Name to wall seconds by cores, of the whole query; those of the stage's tasks when left out.
        cpu_seconds: Name to the CPU time of the whole query; the sum of the tasks when left out.
    """
    strips = [
        _Strip(
            name,
            sorted(seconds, reverse=True),
            walls.get(name, {}) if walls is not None else _replayed(seconds),
            cpu_seconds.get(name) if cpu_seconds is not None else sum(seconds) or None,
        )
        for name, seconds in strategies.items()
    ]
    heads = ["whole query" if walls else "these tasks", "CPU" if cpu_seconds else "task time"]
    path.write_text("\n".join(_lines(strips, title, heads)) + "\n", encoding="utf-8")


def _replayed(seconds: Sequence[float]) -> dict[int, float]:
    return {cores: replayed_seconds([seconds], cores) for cores in CORES} if seconds else {}


def _lines(strips: Sequence[_Strip], title: str, heads: Sequence[str]) -> Iterator[str]:
    bottom = TOP + STRIP_STEP * len(strips)
    height = bottom + FOOT
    longest = max((second for strip in strips for second in strip.seconds[:1]), default=0.0) or 1.0
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img">'
    )
    yield f"<title>{escape(title)}</title>"
    yield f"<style>{_STYLE}@media (prefers-color-scheme: dark) {{{_DARK}}}</style>"
    yield f'<rect class="page" width="{WIDTH}" height="{height}"/>'
    yield _text(24, 36, title, "title")
    yield _text(24, 60, "One bar per task, the longest on top. The stage ends when it does.", "soft")
    yield '<rect class="wait" x="24" y="72" width="16" height="14"/>'
    yield _text(46, 84, "what the others wait for it", "soft")
    yield '<rect class="uneven" x="228" y="72" width="16" height="14"/>'
    yield _text(250, 84, "late: more than twice the median", "soft")
    yield from _column_heads(heads)
    yield from _axis(longest, bottom)
    for place, strip in enumerate(strips):
        yield from _strip(strip, TOP + STRIP_STEP * place, longest)
    yield "</svg>"


def _column_heads(heads: Sequence[str]) -> Iterator[str]:
    yield _text((COLUMNS[0] - 58 + COLUMNS[2]) // 2, 72, f"wall time replayed, {heads[0]}", "soft mid")
    for at, cores in zip(COLUMNS, CORES, strict=False):
        yield _text(at, 92, f"{cores} cores", "soft end")
    yield _text(COLUMNS[-1], 92, heads[1], "soft end")


def _axis(longest: float, bottom: int) -> Iterator[str]:
    """Lines through all strips at round seconds."""
    step = _round_step(longest)
    for number in range(int(longest / step + 1e-9) + 1):
        x = _x(number * step, longest)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP - 8}" y2="{bottom - 8}"/>'
        yield _text(x, bottom + 12, f"{number * step:g}", "soft mid")
    yield _text(LEFT, bottom + 36, "seconds that a task took", "soft")


def _round_step(longest: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that cuts the axis into at most six parts."""
    power = 0.001
    while True:
        for factor in (1, 2, 5):
            if longest / (power * factor) <= 6:
                return power * factor
        power *= 10


def _strip(strip: _Strip, top: int, longest: float) -> Iterator[str]:
    yield f'<line class="rule" x1="{LEFT}" x2="{LEFT}" y1="{top}" y2="{top + STRIP_HEIGHT}"/>'
    yield _text(24, top + 16, strip.name, "name")
    if not strip.seconds:
        yield _text(LEFT + 10, top + 16, "no task of this kind", "soft")
    else:
        count = len(strip.seconds)
        yield _text(24, top + 36, f"{count:,} task{'' if count == 1 else 's'}", "soft")
        yield from _bars(strip, top, longest)
    told = [strip.walls.get(cores) for cores in CORES] + [strip.work_seconds]
    for at, seconds in zip(COLUMNS, told, strict=True):
        style = "strong end" if at == COLUMNS[-2] else "end"
        yield _text(at, top + 16, "-" if seconds is None else format_seconds(seconds), style)


def _bars(strip: _Strip, top: int, longest: float) -> Iterator[str]:
    rows = list(_rows(strip))
    late = {True: "", False: ""}
    y = float(top)
    for seconds, height, is_late in rows:
        thick = height - 1 if height >= _GAP_FROM else height
        late[is_late] += f"M{LEFT} {y:.2f}H{max(_x(seconds, longest), LEFT + 0.5):g}v{thick:.2f}H{LEFT}Z"
        y += height
    kind = "uneven" if rows[0][2] else "level"
    end = _x(strip.seconds[0], longest)
    size = f'width="{end - LEFT:.2f}" height="{STRIP_HEIGHT}"'
    yield f'<rect class="wait" x="{LEFT}" y="{top}" {size}/>'
    yield f'<path class="bars" d="{late[False]}"/><path class="uneven" d="{late[True]}"/>'
    ratio = f"{strip.ratio:.0f}" if strip.ratio >= 10 else f"{strip.ratio:.1f}"
    yield _text(
        end + 8,
        top + 9,
        f"{format_seconds(strip.seconds[0])} = {ratio} \N{MULTIPLICATION SIGN} median",
        f"strong {kind}",
    )
    middle, foot = _x(strip.median, longest), top + STRIP_HEIGHT
    yield f'<line class="median" x1="{middle}" x2="{middle}" y1="{top}" y2="{foot + 5}"/>'
    yield _text(max(middle, LEFT + 4), foot + 19, f"median {format_seconds(strip.median)}", "")


def _rows(strip: _Strip) -> Iterator[tuple[float, float, bool]]:
    """Seconds, height and lateness of each bar; few late ones among many are thick enough to be seen."""
    count = len(strip.seconds)
    limit = LEVEL_RATIO * max(strip.median, 0.001)
    late = min(sum(seconds > limit for seconds in strip.seconds), count - 1)
    share = STRIP_HEIGHT / count * late
    height = max(share, min(_LATE_HEIGHT * late, _LATE_AT_LEAST))
    yield from _block(strip.seconds[:late], height, is_late=True)
    yield from _block(strip.seconds[late:], STRIP_HEIGHT - height, is_late=False)


def _block(seconds: Sequence[float], height: float, *, is_late: bool) -> Iterator[tuple[float, float, bool]]:
    """Of thousands of tasks no screen shows each: of every group the longest."""
    shown = seconds[:: -(-len(seconds) // _MOST_BARS) or 1]
    yield from ((it, height / len(shown), is_late) for it in shown)


def _x(seconds: float, longest: float) -> float:
    return round(LEFT + BARS_WIDTH * seconds / longest, 2)


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'
