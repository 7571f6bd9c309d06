"""What a Top-N by pruning would save, from facts that cost little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.tuning.facts import InputFacts, KeySample

# Formats whose columns are stored apart, so that a first pass over few of them is cheap.
COLUMNAR = frozenset({"parquet", "orc", "table"})
# Below it one pass over all is quicker than two.
WORTHWHILE_ROWS = 500_000
RATES = (16, 32, 64, 128, 256, 512)
# Measured shares of a full sort of all rows (bench/topn.py): a pass over narrow columns, a row of the sample.
_NARROW_PASS_RATIO = 0.15
_SAMPLED_ROW_RATIO = 0.5
_WORTHWHILE_RATIO = 0.85
# Sampled rows of a group scatter: with twice as many expected as are needed a bound is nearly sure.
_MARGIN = 2


@dataclass(frozen=True)
class Pruning:
    """What is expected of pruning by bounds.

    Attributes:
        one_in: One row in so many is sampled for the bounds.
        left_ratio: Share of the rows that stay to be ranked, 0 to 1.
        group_count: About how many partitions there are.
        cost_ratio: Expected work, as a share of that of ranking all rows.
    """

    one_in: int
    left_ratio: float
    group_count: int
    cost_ratio: float

    @property
    def is_worthwhile(self) -> bool:
        """Clearly less work than ranking all rows."""
        return self.cost_ratio <= _WORTHWHILE_RATIO


def expected_pruning(n: int, *, row_count: int, sample: KeySample) -> Pruning:
    """The best sampling rate, and what it is expected to leave.

    Args:
        n: Rows kept of each partition.
        row_count: Rows of the input, about.
        sample: How they spread over the partitions.

    >>> even = KeySample(("k",), 1_000, 10, "a", 0.1, (100,) * 10)
    >>> best = expected_pruning(10, row_count=1_000_000, sample=even)
    >>> best.one_in, round(best.left_ratio, 4), best.group_count
    (64, 0.0064, 10)
    """
    groups = max(1, sample.groups_among(row_count))
    sizes = _sizes(sample, groups, row_count)

    def at(one_in: int) -> Pruning:
        left = sum(count * _left(size, n, one_in) for size, count in sizes)
        ratio = min(1.0, left / max(1, row_count))
        return Pruning(one_in, ratio, groups, _NARROW_PASS_RATIO + _SAMPLED_ROW_RATIO / one_in + ratio)

    return min(map(at, RATES), key=lambda pruning: pruning.cost_ratio)


def _sizes(sample: KeySample, groups: int, row_count: int) -> list[tuple[float, int]]:
    """(rows, number of partitions of that size): the largest as seen, the others as if they were alike."""
    scale = row_count / max(1, sample.row_count)
    seen = [(size * scale, 1) for size in sample.group_sizes if size > 1]
    others = groups - len(seen)
    left = row_count - sum(size for size, _ in seen)
    return [*seen, (max(0.0, left) / others, others)] if others > 0 else seen


def _left(size: float, n: int, one_in: int) -> float:
    """Rows of a partition that stay: it has a bound when the sample holds n of them."""
    return min(size, float(n * one_in)) if size / one_in >= _MARGIN * n else size


def score_bytes_ratio(score: str, *, columns: Sequence[str], facts: InputFacts) -> float | None:
    """Stored bytes of the score's column as a share of the output's; None when they are not known."""
    known = facts.column_bytes
    narrow = known.get(score.strip("`").lower())
    wide = sum(known.get(name.lower(), 0) for name in columns) if columns else sum(known.values())
    return None if narrow is None or not wide else narrow / max(wide, narrow)
