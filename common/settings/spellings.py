"""Names that were meant: a few letters off, another case, or one part left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_LONG = 16  # of names from which two letters may be off
_SHORTEST = 10  # names that anything of the user's own could be near to


def near_spellings(name: str, known: Iterable[str]) -> list[str]:
    """Known names that differ by case only, or by one letter (two in long names); the nearest first.

    >>> near_spellings("spark.executor.memroy", ["spark.executor.memory", "spark.executor.cores"])
    ['spark.executor.memory']
    """
    allowed = 2 if len(name) >= _LONG else 1
    letters = Counter(name.lower())
    hits = []
    for candidate in known:
        if len(candidate) < _SHORTEST or abs(len(candidate) - len(name)) > allowed:
            continue
        other = Counter(candidate.lower())
        if sum((letters - other).values()) > allowed or sum((other - letters).values()) > allowed:
            continue
        distance = edit_distance(name.lower(), candidate.lower(), limit=allowed)
        if distance <= allowed:
            hits.append((distance, candidate))
    return [candidate for _, candidate in sorted(hits)][:3]


def with_a_part_more(name: str, known: Iterable[str]) -> list[str]:
    """Known names of which exactly one part between dots is missing; none when too many fit.

    >>> with_a_part_more("spark.shuffle.partitions", ["spark.sql.shuffle.partitions", "spark.sql.cbo"])
    ['spark.sql.shuffle.partitions']
    """
    parts = name.split(".")
    if len(parts) < 3:
        return []
    hits = [
        candidate
        for candidate in known
        if candidate.endswith(parts[-1])
        and len(whole := candidate.split(".")) == len(parts) + 1
        and any(whole[:index] + whole[index + 1 :] == parts for index in range(1, len(whole) - 1))
    ]
    return sorted(hits) if len(hits) <= 2 else []


def edit_distance(left: str, right: str, *, limit: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours from one to the other; `limit` + 1 if more.

    >>> edit_distance("memroy", "memory", limit=2), edit_distance("cores", "core", limit=2)
    (1, 1)
    """
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, letter in enumerate(left, start=1):
        last, before, row = before, row, [i]
        for j, other in enumerate(right, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
