"""A dimension in the Python workers: Arrow sorted by hash, mapped from the executor's one file.

The workers of an executor map the file of the broadcast variable, so that they share its pages; each opens it
once and keeps it across tasks. A batch of facts is found by binary search of the hashes, then by the keys
themselves: a collision of hashes costs a comparison and never a wrong row.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

HASH = "h"
# Before the Arrow file: this, and its length in eight bytes.
MAGIC = b"SALTPAN1"
HEADER_BYTES = len(MAGIC) + 8
ALIGNMENT_BYTES = 64
_SEARCHED_BYTES = 4 * ALIGNMENT_BYTES


@dataclass(frozen=True)
class Layout:
    """What is in the table besides the hash, which comes first.

    Attributes:
        keys: Key columns; empty where the hash is the key.
        values: The columns that a fact gets.
        expands: A fact gets a list of rows, not one.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    expands: bool = False


class HashTable:
    """The rows of a dimension, sorted by their hash.

    Args:
        rows: The hash, int64 without NULL and ascending, then the other columns.
        layout: What they are.
    """

    def __init__(self, rows: pa.RecordBatch, layout: Layout) -> None:
        self._rows = rows
        self._layout = layout
        self._hashes: Integers = rows.column(0).to_numpy(zero_copy_only=True)

    @cached_property
    def _are_unique(self) -> bool:
        return bool((self._hashes[1:] != self._hashes[:-1]).all())

    def find(self, hashes: pa.Array[Any], *keys: pa.Array[Any]) -> pa.Array[Any]:
        """The values for each fact.

        Args:
            hashes: int64; NULL where the key holds a NULL, which finds nothing.
            keys: The keys of `Layout.keys`, of one type with them.

        Returns:
            A struct of `Layout.values` for each fact, NULL where there is no match; with `expands` a list of
            all matches.
        """
        facts, places = self._candidates(hashes)
        if self._layout.keys:
            same = self._same(facts, places, keys)
            facts, places = facts[same], places[same]
        return (
            self._lists(len(hashes), facts, places)
            if self._layout.expands
            else self._structs(len(hashes), facts, places)
        )

    def _candidates(self, hashes: pa.Array[Any]) -> tuple[Integers, Integers]:
        """(fact, row) pairs of equal hash."""
        import numpy as np

        wanted = hashes.fill_null(0).to_numpy(zero_copy_only=False)
        known = ~hashes.is_null().to_numpy(zero_copy_only=False)
        if not len(self._hashes):
            nothing = np.empty(0, np.int64)
            return nothing, nothing
        first = np.searchsorted(self._hashes, wanted)
        if self._are_unique:
            at = np.minimum(first, len(self._hashes) - 1)
            facts = np.flatnonzero(known & (self._hashes[at] == wanted))
            return facts, first[facts]
        counts = np.where(known, np.searchsorted(self._hashes, wanted, side="right") - first, 0)
        facts = np.repeat(np.arange(len(wanted)), counts)
        within = np.arange(len(facts)) - np.repeat(np.cumsum(counts) - counts, counts)
        return facts, first[facts] + within

    def _same(self, facts: Integers, places: Integers, keys: Sequence[pa.Array[Any]]) -> NDArray[np.bool_]:
        """Which of the pairs have equal keys; NaN is equal to NaN, as in Spark's joins."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        same = np.ones(len(facts), bool)
        ours_at, theirs_at = _integers(facts), _integers(places)
        for name, given in zip(self._layout.keys, keys, strict=True):
            ours = given.take(ours_at)
            theirs = self._rows.column(name).take(theirs_at).cast(ours.type)
            equal: Any = pc.equal(ours, theirs)
            if pa.types.is_floating(ours.type):
                equal = pc.or_(equal, pc.and_(pc.is_nan(ours), pc.is_nan(theirs)))
            same &= equal.fill_null(False).to_numpy(zero_copy_only=False)
        return same

    def _structs(self, count: int, facts: Integers, places: Integers) -> pa.Array[Any]:
        import numpy as np
        import pyarrow as pa

        missing, at = np.ones(count, bool), np.zeros(count, np.int64)
        missing[facts], at[facts] = False, places
        mask = pa.array(missing)
        return self._taken(pa.array(at, mask=missing), mask)

    def _lists(self, count: int, facts: Integers, places: Integers) -> pa.Array[Any]:
        import numpy as np
        import pyarrow as pa

        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(facts, minlength=count), out=offsets[1:])
        lists: Any = pa.ListArray
        found: pa.Array[Any] = lists.from_arrays(pa.array(offsets), self._taken(_integers(places), None))
        return found

    def _taken(self, places: pa.Array[Any], mask: pa.Array[Any] | None) -> pa.Array[Any]:
        import pyarrow as pa

        values = [self._rows.column(name).take(places) for name in self._layout.values]
        fields = [pa.field(name, value.type) for name, value in zip(self._layout.values, values, strict=True)]
        if mask is None:
            return pa.StructArray.from_arrays(values, fields=fields)
        return pa.StructArray.from_arrays(values, fields=fields, mask=mask)


def finder(variable: Any, layout: Layout) -> Callable[..., pa.Array[Any]]:
    """What an Arrow UDF does with the hashes and keys of a batch of facts.

    Args:
        variable: A broadcast variable of `payload`'s bytes; nothing else goes with the function.
        layout: What is in it.
    """

    def find(hashes: pa.Array[Any], *keys: pa.Array[Any]) -> pa.Array[Any]:
        return opened(variable, layout).find(hashes, *keys)

    import pyarrow as pa

    # Spark reads from these that it is a function of arrays; as text they would name what workers lack.
    find.__annotations__ = dict.fromkeys(("hashes", "keys", "return"), pa.Array)
    return find


# By the variable, which a worker keeps as long as the executor has it.
_OPEN: weakref.WeakKeyDictionary[Any, HashTable] = weakref.WeakKeyDictionary()


def opened(variable: Any, layout: Layout) -> HashTable:
    """The table of a broadcast variable: decoded once in each worker process."""
    table = _OPEN.get(variable)
    if table is None:
        table = _OPEN[variable] = HashTable(mapped(variable), layout)
    return table


def mapped(variable: Any) -> pa.RecordBatch:
    """The rows in a broadcast variable, without a copy where it is a file that was not encrypted."""
    import pyarrow as pa

    path = getattr(variable, "_path", None)
    data = pa.py_buffer(variable.value) if path is None else pa.memory_map(path).read_buffer()
    # A pickle of bytes: few bytes about it, then they themselves.
    start = data.slice(0, min(_SEARCHED_BYTES, data.size)).to_pybytes().index(MAGIC)
    header = data.slice(start, HEADER_BYTES).to_pybytes()
    body = data.slice(start + HEADER_BYTES, int.from_bytes(header[len(MAGIC) :], "little"))
    if body.address % 8:
        body = pa.py_buffer(body.to_pybytes())
    with pa.ipc.open_file(pa.BufferReader(body)) as reader:
        return reader.get_batch(0)


def payload(rows: pa.Table) -> bytes:
    """The rows, whose first column is their hash, as a broadcast variable's value.

    In the pickle of it Arrow's buffers lie at multiples of eight bytes, so that they can be used where they
    are.

    Args:
        rows: Any order; the hash is int64 without NULL.
    """
    import numpy as np
    import pyarrow as pa

    order = np.argsort(rows.column(0).to_numpy(), kind="stable")
    # One chunk a column: what is longer than two GiB of text needs wider offsets.
    ordered = pa.RecordBatch.from_pydict(
        {name: _one_chunk(column).take(_integers(order)) for name, column in _columns(rows)}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, ordered.schema) as writer:
        writer.write_batch(ordered)
    body = sink.getvalue()
    header = MAGIC + body.size.to_bytes(8, "little")
    around = 2 + (5 if body.size + ALIGNMENT_BYTES + HEADER_BYTES < 2**32 else 9)
    padding = -(around + HEADER_BYTES) % ALIGNMENT_BYTES
    return b"".join((bytes(padding), header, memoryview(body)))


def _integers(places: Integers) -> Any:
    import pyarrow as pa

    return pa.array(places)


def _columns(rows: pa.Table) -> list[tuple[str, pa.ChunkedArray[Any]]]:
    return list(zip(rows.column_names, rows.columns, strict=True))


def _one_chunk(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    import pyarrow as pa

    wide: dict[Any, Any] = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    if column.nbytes >= 2**31 and column.type in wide:
        column = column.cast(wide[column.type])
    chunks: Any = column.chunks or [pa.array([], column.type)]
    found: pa.Array[Any] = pa.concat_arrays(chunks)
    return found
