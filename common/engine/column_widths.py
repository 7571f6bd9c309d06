"""How wide the values of each column are in memory, from the first rows of a local Parquet input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from common.engine.input_paths import reading
from common.engine.listing import Listing

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 2_000
# A field of a row in Spark's own format; what does not fit in it follows, rounded up to words.
_FIELD_BYTES = 8


def column_widths(listing: Listing) -> dict[str, float]:
    """Average bytes of each column's values in Spark's row format, by lower-case name.

    Args:
        listing: What was found.

    Returns:
        Empty for other formats and file systems, and for inputs without rows. Columns of folder names count
        as their text.
    """
    import pyarrow.parquet as pq

    if not listing.is_local or listing.format != "parquet" or not listing.files:
        return {}
    file = max(listing.files, key=lambda one: one.size_bytes)
    with reading(file.path), pq.ParquetFile(file.path) as content:
        batch = next(content.iter_batches(batch_size=_ROWS), None)
    if batch is None or not batch.num_rows:
        return {}
    widths = {name.lower(): _width(batch.column(name)) for name in batch.schema.names}
    folders = {name.lower(): _FIELD_BYTES + float(len(value or "")) for name, value in file.partition}
    return {**widths, **folders}


def _width(values: pa.Array[Any]) -> float:
    import pyarrow as pa
    from pyarrow import types

    kind = values.type
    if isinstance(values, pa.DictionaryArray):
        values, kind = values.dictionary_decode(), kind.value_type
    if types.is_fixed_size_binary(kind) or (types.is_primitive(kind) and kind.bit_width <= 64):
        return float(_FIELD_BYTES)
    return _FIELD_BYTES + values.nbytes / len(values)
