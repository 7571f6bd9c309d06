"""Which way each hot key goes: its few rows broadcast, or its many split and the few replicated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from common.tuning.hot_keys import HotKey
from common.tuning.skew_facts import Known

Way = Literal["broadcast_right", "broadcast_left", "split_left", "split_right"]
_MAX_SALTS = 1024


@dataclass(frozen=True)
class Ways:
    """Which key goes which way.

    Attributes:
        of: For each hot key.
        salts: Parts of each split key, by hash.
        broadcast_bytes: What the rows to broadcast weigh, decoded.
        replication_ratio: Rows of both sides with the copies that salts make, as a multiple of those without.
    """

    of: tuple[tuple[HotKey, Way], ...] = ()
    salts: Mapping[int | None, int] = field(default_factory=dict)
    broadcast_bytes: float = 0.0
    replication_ratio: float = 1.0

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
    return _split(known, known.keys)


def broadcast_or_split(known: Known) -> Ways:
    """Broadcast as far as the limit allows, the smallest first; what is too large is split (K8)."""
    fitting: list[HotKey] = []
    size = 0.0
    for key in sorted(known.keys, key=lambda key: _few_bytes(key, known)):
        if size + _few_bytes(key, known) > known.question.max_broadcast_bytes:
            break
        size += _few_bytes(key, known)
        fitting.append(key)
    rest = _split(known, tuple(key for key in known.keys if key not in fitting))
    ways = (*((key, _broadcast_way(key)) for key in known.keys if key in fitting), *rest.of)
    return Ways(ways, rest.salts, size, rest.replication_ratio)


def _split(known: Known, keys: tuple[HotKey, ...]) -> Ways:
    salts = {key.key_hash: known.question.salts or _salt_count(key, known) for key in keys}
    copies = sum(min(key.left_rows, key.right_rows) * (salts[key.key_hash] - 1) for key in keys)
    total = (known.left.rows or 0) + (known.right.rows or 0)
    ways = tuple((key, _split_way(key)) for key in keys)
    return Ways(ways, salts, replication_ratio=1 + copies / total if total else 1.0)


def _broadcast_way(key: HotKey) -> Way:
    return "broadcast_right" if key.left_rows >= key.right_rows else "broadcast_left"


def _split_way(key: HotKey) -> Way:
    return "split_left" if key.left_rows >= key.right_rows else "split_right"


def _few_bytes(key: HotKey, known: Known) -> float:
    """What the key's rows on its smaller side weigh, decoded; of semi and anti only the keys count."""
    if known.question.how in ("semi", "anti"):
        return 0.0
    side, rows = (
        (known.right, key.right_rows) if key.left_rows >= key.right_rows else (known.left, key.left_rows)
    )
    return rows * (side.decoded_bytes or 0.0) / side.rows if side.rows else 0.0


def _salt_count(key: HotKey, known: Known) -> int:
    """As many parts as make a part no larger than a task without hot keys, as a power of two."""
    left, right = key.left_rows * known.left.row_bytes, key.right_rows * known.right.row_bytes
    wanted = max(left, right) / known.shuffled.median_bytes
    return max(2, min(_MAX_SALTS, 1 << math.ceil(math.log2(max(wanted, 1.0)))))
