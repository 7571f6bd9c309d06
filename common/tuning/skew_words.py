"""Hot keys in words."""

from __future__ import annotations

from collections.abc import Sequence

from common.core.units import format_bytes
from common.tuning.hot_keys import HotKey, SideFacts, key_bytes, shares
from common.tuning.skew_facts import Known
from common.tuning.skew_ways import Ways

# Keys that are named one by one.
_SAID = 5


def rows_text(known: Known) -> str:
    """How many rows are joined."""
    left, right = (
        "an unknown number of" if side.rows is None else f"{side.rows:,}"
        for side in (known.left, known.right)
    )
    return f"{left} left and {right} right rows"


def dropped_in_words(known: Known) -> str:
    """What --drop-keys leaves out, key by key; empty when nothing."""
    drop = known.question.drop
    if not drop:
        return ""
    counts = {key.key: (key.left_rows, key.right_rows) for key in known.dropped}
    said = [f"{_named(key, known)} ({_both(*counts.get(key, (0, 0)))})" for key in drop[:_SAID]]
    if len(drop) > _SAID:
        rest = [rows for key, rows in counts.items() if key not in drop[:_SAID]]
        ours, theirs = (sum(pair[at] for pair in rest) for at in (0, 1))
        said.append(f"and {len(drop) - _SAID} more keys ({_both(ours, theirs)})")
    return f"dropped as asked: {', '.join(said)}; "


def _both(left_rows: int, right_rows: int) -> str:
    return f"{left_rows:,} left and {right_rows:,} right rows"


def hot_in_words(known: Known) -> str:
    """Which keys are hot, and what task the largest would make."""
    keys = describe_keys(known.keys, known.left, known.right)
    largest = describe_key(known.keys[0], known.question.on, known.left, known.right)
    return f"{keys} (key {largest}, {_task(known.keys[0], known)})"


def apart_in_words(known: Known, ways: Ways) -> str:
    """Which keys are hot, what task the largest would make, and what is done about them."""
    nulls = "rows with a NULL key go past the join" if known.nulls_matter else ""
    if not known.keys:
        return f"{nulls}: {ways.treated_ratio(known):.1%} of all rows need no shuffle"
    done = [_broadcast_words(ways), _split_words(ways), nulls, _left_over_words(known, ways)]
    return f"{hot_in_words(known)}: {', '.join(text for text in done if text)}"


def key_lines(known: Known, ways: Ways) -> list[str]:
    """A line for each of the hot keys with most rows, NULL among them; then how many more there are."""
    lines = [_key_line(key, known, ways) for key in known.hot[:_SAID]]
    more = len(known.hot) - len(lines)
    return lines + ([f"{more} more hot key{'' if more == 1 else 's'}, in the run record"] if more else [])


def _key_line(key: HotKey, known: Known, ways: Ways) -> str:
    said = f"key {describe_key(key, known.question.on, known.left, known.right)}"
    if key.is_null:
        return f"{said}, {_task(key, known)}; they go past the join" if known.nulls_matter else said
    way = ways.way_of(key)
    done = {
        "broadcast_right": "; its right rows are broadcast",
        "broadcast_left": "; its left rows are broadcast",
        "split_left": f"; its left rows are split into {ways.salts.get(key.key_hash)} parts",
        "split_right": f"; its right rows are split into {ways.salts.get(key.key_hash)} parts",
    }
    return f"{said}, {_task(key, known)}{done[way] if way else ''}"


def _task(key: HotKey, known: Known) -> str:
    """The task that the key would be in, in a shuffle of everything."""
    median = known.shuffled.median_bytes
    size = max(median, known.cold_bytes + key_bytes(key, known.left, known.right))
    return f"predicted task {format_bytes(round(size))} of {format_bytes(round(median))} median"


def _left_over_words(known: Known, ways: Ways) -> str:
    if not ways.left_over:
        return ""
    names = ", ".join(_named(key.key or (), known) for key in ways.left_over[:_SAID])
    more = len(ways.left_over) - _SAID
    return f"{names}{f' and {more} more' if more > 0 else ''} stay in the shuffle, beyond both limits"


def _named(key: Sequence[str], known: Known) -> str:
    names = [name for name, _ in known.question.on]
    return ", ".join(f"{name}={value}" for name, value in zip(names, key, strict=False))


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
    if key.is_null:
        names = ", ".join(name for name, _ in on)
        return f"{names}=NULL: {ours * 100:.1f} % of left and {theirs * 100:.1f} % of right rows"
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
