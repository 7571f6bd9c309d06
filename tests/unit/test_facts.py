from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.core.errors import SchemaConflictError
from common.engine import key_samples
from common.engine.facts import sample_keys, static_facts, static_facts_of_table
from common.engine.listing import Listing, list_input
from common.settings.inputs import InputRequest
from common.tuning.facts import KeySample


def listed(*paths: object, **fields: object) -> Listing:
    return list_input(InputRequest("input", tuple(str(path) for path in paths), **fields))  # type: ignore[arg-type]


def write(path: Path, columns: dict[str, Any], **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, **options)


def test_facts_of_partitioned_parquet(tmp_path: Path) -> None:
    write(tmp_path / "day=2013-01-01/f.parquet", {"n": [1, 2], "s": ["x", "y"]})
    write(tmp_path / "day=2013-01-02/f.parquet", {"n": [3], "s": ["z"]})
    facts = static_facts(listed(tmp_path))
    sizes = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    assert (facts.name, facts.format, facts.paths) == ("input", "parquet", (str(tmp_path),))
    assert (facts.file_count, facts.size_bytes, facts.row_count) == (2, sizes, 3)
    assert (facts.column_names, facts.partition_columns) == (("n", "s", "day"), ("day",))
    assert facts.schema_declared
    assert len(facts.fingerprint or "") == 64


@pytest.mark.parametrize(
    ("name", "content", "fields", "columns", "declared"),
    [
        ("a.csv", "zip,n\n00123,1\n", {}, ("zip", "n"), False),
        ("a.csv", "zip,n\n00123,1\n", {"schema": "n INT"}, ("n",), True),
        ("a.json", '{"a": 1}\n', {}, None, False),
        ("a.json", '{"a": 1}\n', {"schema": "a INT"}, ("a",), True),
        ("a.txt", "to be\n", {}, ("value",), True),
    ],
)
def test_facts_of_text_formats(
    tmp_path: Path,
    name: str,
    content: str,
    fields: dict[str, str],
    columns: tuple[str, ...] | None,
    *,
    declared: bool,
) -> None:
    (tmp_path / name).write_text(content)
    facts = static_facts(listed(tmp_path / name, **fields))
    assert (facts.column_names, facts.schema_declared) == (columns, declared)
    assert (facts.row_count, facts.size_bytes) == (None, len(content))


def test_an_allowed_empty_input_has_no_rows(tmp_path: Path) -> None:
    facts = static_facts(listed(tmp_path, schema="zip STRING", allow_empty=True))
    assert (facts.row_count, facts.file_count, facts.column_names) == (0, 0, ("zip",))


def test_tables_and_remote_paths_are_facts_without_numbers() -> None:
    table = static_facts_of_table(InputRequest("left", ("table:db.t",), schema="a INT"))
    assert (table.format, table.file_count, table.column_names, table.fingerprint) == (
        "table",
        None,
        ("a",),
        None,
    )
    assert static_facts(listed("table:db.t")).format == "table"
    remote = static_facts(listed("s3a://b/x.csv"))
    assert (remote.format, remote.size_bytes, remote.row_count) == ("csv", None, None)


def test_facts_make_the_checks_of_headers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.csv").write_text("b\n1\n")
    with pytest.raises(SchemaConflictError):
        static_facts(listed(tmp_path))


def test_a_small_input_is_counted_whole(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", {"k": ["a", "b", "a", None, "a"], "n": [1, 1, 1, 2, 2]}, row_group_size=2)
    assert sample_keys(listed(tmp_path), ["K"]) == KeySample(
        ("K",), 5, 3, "a", 3 / 5, (3, 1, 1), 2, 0.2, ((("a",), 3),)
    )
    assert sample_keys(listed(tmp_path), ["k", "n"]) == KeySample(
        ("k", "n"), 5, 4, "a, 1", 2 / 5, (2, 1, 1, 1), 3, 0.2, ((("a", "1"), 2),)
    )


def test_columns_of_folders_count_by_their_rows(tmp_path: Path) -> None:
    write(tmp_path / "day=1/f.parquet", {"k": ["a"] * 9})
    write(tmp_path / "day=__HIVE_DEFAULT_PARTITION__/f.parquet", {"k": ["a"]})
    assert sample_keys(listed(tmp_path), ["day"]) == KeySample(
        ("day",), 10, 2, "1", 0.9, (9, 1), 1, 0.1, ((("1",), 9),)
    )
    assert sample_keys(listed(tmp_path), ["k", "day"]) == KeySample(
        ("k", "day"), 10, 2, "a, 1", 0.9, (9, 1), 1, 0.1, ((("a", "1"), 9),)
    )


def test_a_big_sorted_input_is_thinned_over_its_whole_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_samples, "ROW_LIMIT", 1000)
    write(tmp_path / "f.parquet", {"k": sorted([0] * 30_000 + list(range(1, 70_001)))}, row_group_size=20_000)
    sample = sample_keys(listed(tmp_path), ["k"])
    assert sample is not None
    assert sample.row_count == 1000
    assert sample.largest_key == "0"
    assert math.isclose(sample.largest_ratio, 0.3, abs_tol=0.01)
    assert sample == sample_keys(listed(tmp_path), ["k"])


def test_of_many_files_eight_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        write(tmp_path / f"f{number:02}.parquet", {"k": [number]})
    sample = sample_keys(listed(tmp_path), ["k"])
    assert sample is not None
    assert (sample.row_count, sample.distinct_count) == (8, 8)


@pytest.mark.parametrize("columns", [["absent"], ["k", "absent"], [], ["nested"]])
def test_what_cannot_be_counted(tmp_path: Path, columns: list[str]) -> None:
    write(tmp_path / "f.parquet", {"k": [1], "nested": [[1]]})
    assert sample_keys(listed(tmp_path), columns) is None


def test_other_formats_are_not_cheap(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k\n1\n")
    assert sample_keys(listed(tmp_path), ["k"]) is None
    assert sample_keys(listed("s3a://b/x.parquet"), ["k"]) is None


def test_no_rows_are_no_sample(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", {"k": pa.array([], pa.int64())})
    assert sample_keys(listed(tmp_path), ["k"]) is None


def test_stored_bytes_tell_which_columns_are_wide(tmp_path: Path) -> None:
    rows = {"N": list(range(1000)), "text": [f"{number:0>100}" for number in range(1000)]}
    write(tmp_path / "f.parquet", rows)
    stored = pq.read_metadata(tmp_path / "f.parquet").row_group(0)
    found = static_facts(listed(tmp_path)).column_bytes
    assert found == {
        "n": stored.column(0).total_compressed_size,
        "text": stored.column(1).total_compressed_size,
    }
