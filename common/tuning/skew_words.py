"""Hot keys in words."""

from __future__ import annotations

from collections.abc import Sequence

from common.core.units import format_bytes
from common.tuning.hot_keys import HotKey, SideFacts, shares
from common.tuning.skew_facts import Known
from common.tuning.skew_ways import Ways


def rows_text(known: Known) -> str:
    """How many rows are joined."""
    left, right = (
        "an unknown number of" if side.rows is None else f"{side.rows:,}"
        for side in (known.left, known.right)
    )
    return f"{left} left and {right} right rows"


def dropped_in_words(known: Known) -> str:
    """What --drop-keys leaves out, key by key; empty when nothing."""
    if not known.question.drop:
        return ""
    names = [name for name, _ in known.question.on]
    counts = {key.key: key for key in known.dropped}
    said = []
    for key in known.question.drop[:5]:
        rows = counts.get(key)
        text = ", ".join(f"{name}={value}" for name, value in zip(names, key, strict=False))
        ours, theirs = (rows.left_rows, rows.right_rows) if rows else (0, 0)
        said.append(f"{text} ({ours:,} left and {theirs:,} right rows)")
    more = len(known.question.drop) - len(said)
    return f"dropped as asked: {', '.join(said)}{f' and {more} more keys' if more else ''}; "


def apart_in_words(known: Known, ways: Ways) -> str:
    """Which keys are hot, what task the largest would make, and what is done about them."""
    nulls = "rows with a NULL key go past the join" if known.nulls_matter else ""
    if not known.keys:
        return f"{nulls}: {known.hot_ratio:.1%} of all rows need no shuffle"
    keys = describe_keys(known.keys, known.left, known.right)
    largest = describe_key(known.keys[0], known.question.on, known.left, known.right)
    sizes = known.shuffled
    task = f"{format_bytes(round(sizes.largest_bytes))} of {format_bytes(round(sizes.median_bytes))} median"
    done = [_broadcast_words(ways), _split_words(ways), nulls]
    return f"{keys} (key {largest}, predicted task {task}): {', '.join(text for text in done if text)}"


def _broadcast_words(ways: Ways) -> str:
    count = sum(way.startswith("broadcast") for _, way in ways.of)
    size = format_bytes(round(ways.broadcast_bytes))
    return f"the rows that match {count} of them ({size}) are broadcast" if count else ""


def _split_words(ways: Ways) -> str:
    if not ways.salts:
        return ""
    low, high = min(ways.salts.values()), max(ways.salts.values())
    parts = f"{low}" if low == high else f"{low} to {high}"
    ratio = f"{ways.replication_ratio:.2f} times the rows"
    return f"{len(ways.salts)} split into {parts} parts ({ratio})"


def describe_key(key: HotKey, on: Sequence[tuple[str, str]], left: SideFacts, right: SideFacts) -> str:
    """One key with its share of the side it fills, and its rows on the other.

    >>> sides = SideFacts(1000, 8.0), SideFacts(16, 8.0)
    >>> describe_key(HotKey(("UA",), 1, 174, 1), [("carrier", "carrier")], *sides)
    'carrier=UA: 17.4 % of left rows, 1 row on the right'
    """
    ours, theirs = shares(key, left, right)
    where, share, other, rows = (
        ("left", ours, "right", key.right_rows) if key.left_rows >= key.right_rows else
        ("right", theirs, "left", key.left_rows)
    )  # fmt: skip
    text = ", ".join(f"{name}={value}" for (name, _), value in zip(on, key.key or (), strict=False))
    few = f"{rows:,} row{'' if rows == 1 else 's'}" if rows else "none"
    return f"{text}: {share * 100:.1f} % of {where} rows, {few} on the {other}"


def describe_keys(keys: Sequence[HotKey], left: SideFacts, right: SideFacts) -> str:
    """How many keys, and what they hold together.

    >>> sides = SideFacts(1000, 8.0), SideFacts(16, 8.0)
    >>> describe_keys([HotKey(("UA",), 1, 174, 1), HotKey(("DL",), 2, 100, 1)], *sides)
    '2 hot keys hold 27.4 % of left and 12.5 % of right rows'
    """
    held = [shares(key, left, right) for key in keys]
    ours, theirs = (100 * sum(pair[at] for pair in held) for at in (0, 1))
    one = len(keys) == 1
    count = "1 hot key holds" if one else f"{len(keys)} hot keys hold"
    return f"{count} {ours:.1f} % of left and {theirs:.1f} % of right rows"
