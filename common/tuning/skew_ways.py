"""Which way each hot key goes: its few rows broadcast, or its many split and the few replicated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from common.tuning.hot_keys import KEY_BYTES, HotKey, TaskSizes, task_sizes
from common.tuning.skew_facts import Known

Way = Literal["broadcast_right", "broadcast_left", "split_left", "split_right"]
_MAX_SALTS = 1024
_FINER, _CHEAP_RATIO = 4, 0.01


@dataclass(frozen=True)
class Ways:
    """Which key goes which way.

    Attributes:
        of: For each hot key that goes one.
        salts: Parts of each split key, by hash.
        broadcast_bytes: What the rows to broadcast weigh, decoded.
        replication_ratio: Rows of both sides with the copies that salts make, as a multiple of those without.
        left_over: Hot keys that stay with the others: no way fits the limits.
    """

    of: tuple[tuple[HotKey, Way], ...] = ()
    salts: Mapping[int | None, int] = field(default_factory=dict)
    broadcast_bytes: float = 0.0
    replication_ratio: float = 1.0
    left_over: tuple[HotKey, ...] = ()

    @property
    def broadcasts(self) -> bool:
        """True when the few rows of some key are broadcast."""
        return any(way.startswith("broadcast") for _, way in self.of)

    def way_of(self, key: HotKey) -> Way | None:
        """The key's way; None when it has none."""
        return next((way for other, way in self.of if other == key), None)

    def treated_ratio(self, known: Known) -> float:
        """Which share of all rows is broadcast to or split, NULL keys that go past the join among them."""
        keys = [key for key, _ in self.of] + ([known.null] if known.null and known.nulls_matter else [])
        return (
            sum(key.left_rows + key.right_rows for key in keys) / known.row_count if known.row_count else 0.0
        )

    def task_sizes(self, known: Known) -> TaskSizes:
        """What the tasks of the join read once these keys go their ways."""
        shuffled = [key for key in known.keys if not (self.way_of(key) or "").startswith("broadcast")]
        return task_sizes(
            shuffled, known.left, known.right, tasks=known.tasks, parts=self.salts, gone=self._gone(known)
        )

    def _gone(self, known: Known) -> list[HotKey]:
        gone = [key for key, way in self.of if way.startswith("broadcast")]
        return gone + ([known.null] if known.null and known.nulls_matter else [])

    def record(self) -> list[dict[str, Any]]:
        """Each key with its way, as plain JSON values."""
        return [
            {**key_record(key), "way": way}
            | ({"salts": self.salts[key.key_hash]} if way.startswith("split") else {})
            for key, way in self.of
        ]


def key_record(key: HotKey) -> dict[str, Any]:
    """A key and its rows, as plain JSON values."""
    return {
        "key": list(key.key or ()),
        "hash": key.key_hash,
        "left_rows": key.left_rows,
        "right_rows": key.right_rows,
    }


def all_broadcast(known: Known) -> Ways:
    """The few rows of each hot key are broadcast to its many (K6)."""
    ways = tuple((key, _broadcast_way(key)) for key in known.keys)
    return Ways(ways, broadcast_bytes=sum(_few_bytes(key, known) for key in known.keys))


def all_split(known: Known) -> Ways:
    """The many rows of each hot key are split, its few are replicated (K7)."""
    salts = {key.key_hash: _salts(key, known) for key in known.keys}
    return _split(known, known.keys, salts)


def split_within_budget(known: Known, keys: Sequence[HotKey] | None = None) -> Ways:
    """As `all_split`, the largest first, in fewer parts where the copies would be too many (K7, K8)."""
    left = (known.question.replication_budget - 1) * known.row_count
    salts: dict[int | None, int] = {}
    for key in known.keys if keys is None else keys:
        few, count = min(key.left_rows, key.right_rows), _salts(key, known)
        while known.question.salts is None and count > 1 and few * (count - 1) > left:
            count //= 2
        if count > 1 and few * (count - 1) <= left:
            left -= few * (count - 1)
            salts[key.key_hash] = count
    return _split(known, [key for key in known.keys if key.key_hash in salts], salts)


def broadcast_or_split(known: Known) -> Ways:
    """Broadcast as far as the limit allows, the smallest first; split the others within their budget (K8)."""
    fitting: list[HotKey] = []
    size = 0.0
    for key in sorted(known.keys, key=lambda key: _few_bytes(key, known)):
        if size + _few_bytes(key, known) > known.question.max_broadcast_bytes:
            break
        size += _few_bytes(key, known)
        fitting.append(key)
    rest = split_within_budget(known, [key for key in known.keys if key not in fitting])
    ways = (*((key, _broadcast_way(key)) for key in known.keys if key in fitting), *rest.of)
    left_over = tuple(key for key in rest.left_over if key not in fitting)
    return Ways(ways, rest.salts, size, rest.replication_ratio, left_over)


def _split(known: Known, keys: Sequence[HotKey], salts: Mapping[int | None, int]) -> Ways:
    copies = sum(min(key.left_rows, key.right_rows) * (salts[key.key_hash] - 1) for key in keys)
    ways = tuple((key, _split_way(key)) for key in keys)
    ratio = 1 + copies / known.row_count if known.row_count else 1.0
    left_over = tuple(key for key in known.keys if key not in keys)
    return Ways(ways, salts, replication_ratio=ratio, left_over=left_over)


def _salts(key: HotKey, known: Known) -> int:
    return known.question.salts or _salt_count(key, known)


def _broadcast_way(key: HotKey) -> Way:
    return "broadcast_right" if key.left_rows >= key.right_rows else "broadcast_left"


def _split_way(key: HotKey) -> Way:
    return "split_left" if key.left_rows >= key.right_rows else "split_right"


def _few_bytes(key: HotKey, known: Known) -> float:
    """What the key's rows on its smaller side weigh, decoded; semi and anti need the key alone."""
    if known.question.how in ("semi", "anti"):
        return float(KEY_BYTES)
    side, rows = (
        (known.right, key.right_rows) if key.left_rows >= key.right_rows else (known.left, key.left_rows)
    )
    return rows * (side.decoded_bytes or 0.0) / side.rows if side.rows else 0.0


def _salt_count(key: HotKey, known: Known) -> int:
    """A power of two of parts that are no larger than a task's cold rows, or half its fair share.

    Hashes throw the parts into tasks, and some get several: more and smaller ones fall more evenly, and are
    taken while they copy next to nothing.
    """
    left, right = key.left_rows * known.left.row_bytes, key.right_rows * known.right.row_bytes
    wanted = max(left, right) / max(known.cold_bytes, known.bytes / known.tasks / 2, 1.0)
    count = max(2, 1 << math.ceil(math.log2(max(wanted, 1.0))))
    few, finest = min(key.left_rows, key.right_rows), _FINER * count
    while count < finest and few * (2 * count - 1) <= _CHEAP_RATIO * known.row_count:
        count *= 2
    return min(_MAX_SALTS, count)
