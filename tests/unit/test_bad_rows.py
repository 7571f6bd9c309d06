"""Numbers of bad rows in their files, and the flags that reject them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.core.errors import ParameterError
from common.core.key_errors import RejectsError
from common.engine.reader_options import reader_options
from common.settings.inputs import InputRequest
from common.transforms.bad_rows import numbered
from common.tuning.rejects import check_rejects

ROWS = pa.schema(
    [(name, pa.string()) for name in ("reason", "columns", "file", "raw")]
    + [("__place", pa.int64()), ("__is_from_start", pa.bool_())]
)
# Parts of files: is it from the start of its file, and which of its rows are bad.
_PARTS = st.lists(st.tuples(st.booleans(), st.lists(st.booleans(), max_size=6)), max_size=5)


@settings(deadline=None)
@given(parts=_PARTS, batch_rows=st.integers(1, 7))
def test_records_are_numbered_from_the_start_of_a_file(
    parts: list[tuple[bool, list[bool]]], batch_rows: int
) -> None:
    rows: list[dict[str, Any]] = []
    expected = []
    for place, (from_start, bad) in enumerate(parts):
        for number, is_bad in enumerate(bad, 1):
            raw = f"{place}-{number}" if is_bad else None
            rows.append({"raw": raw, "__place": place, "__is_from_start": from_start})
            if is_bad:
                expected.append((raw, number if from_start else None))
    batches = [
        pa.RecordBatch.from_pylist(rows[start : start + batch_rows], schema=ROWS)
        for start in range(0, len(rows), batch_rows)
    ]
    found = [row for batch in numbered([*batches, pa.RecordBatch.from_pylist([], schema=ROWS)])
             for row in batch.to_pylist()]  # fmt: skip
    assert [(row["raw"], row["record"]) for row in found] == expected
    assert all(list(row) == ["reason", "columns", "file", "record", "raw"] for row in found)


def test_what_bad_rows_decides_is_no_reader_option() -> None:
    request = InputRequest("sales", ("x.csv",), options={"Mode": "DROPMALFORMED"}, bad_rows="reject")
    with pytest.raises(ParameterError, match=r"`Mode`: expected none beside --bad-rows reject"):
        reader_options(request, file_format="csv")
    assert reader_options(request, file_format="parquet")["Mode"] == "DROPMALFORMED"
    sifting = reader_options(InputRequest("sales", ("x.csv",), bad_rows="reject"), file_format="json")
    assert sifting == {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "__saltpan_record"}
    lines = InputRequest("sales", ("x.json",), options={"multiline": "TRUE"}, bad_rows="reject")
    with pytest.raises(ParameterError, match="one record a line with --bad-rows reject"):
        reader_options(lines, file_format="json")
    quoted = InputRequest("sales", ("x.csv",), options={"quote": "'"})
    assert reader_options(quoted, file_format="csv")["escape"] == "'"
    strict = reader_options(InputRequest("sales", ("x.csv",)), file_format="json")
    assert strict == {"mode": "FAILFAST"}


def test_a_share_is_of_all_records() -> None:
    check_rejects(2, 200, limit="1%", hint="look")
    check_rejects(323, 1000, limit="32.3%", hint="look")
    with pytest.raises(RejectsError, match=r"at most 0.2% of 199,800 rows, got 400 \(0.2002%\)"):
        check_rejects(400, 199_800, limit="0.2%", hint="look")
    with pytest.raises(
        RejectsError, match=r"at most 0.5% of 200 rows, got 2 \(1%\).*raise the limit, or look"
    ):
        check_rejects(2, 200, limit="0.5%", hint="look")
