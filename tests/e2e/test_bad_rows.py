"""--bad-rows as a user calls it: set aside, limited, and of one run with the output also after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from tests.e2e.conftest import Ended

Run = Callable[..., Ended]
SALES = "shop,amount\nA,10\nB,12x\nA,30\nC\nB,7\nC,1\n"
DECLARED = ["--score", "amount", "--n", "2", "--input-schema", "shop STRING, amount INT"]


def contents(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    return {
        path.name: [tuple(row.values()) for row in pq.read_table(path).to_pylist()]
        for path in sorted(folder.iterdir())
        if path.is_dir()
    }


def test_bad_rows_are_set_aside_with_the_output_or_not_at_all(saltpan: Run, tmp_path: Path) -> None:
    place = tmp_path / "here"
    place.mkdir()
    sales, out = place / "my sales.csv", place / "out"
    sales.write_text(SALES)
    words = ["topn", "--input", sales, *DECLARED]
    strict = saltpan(*words)
    assert strict.code == 3
    assert f"record 2 of {sales}`: expected values of the declared types in amount, got B,12x" in strict.err
    few = saltpan(*words, "--bad-rows", "reject", "--max-rejects", "20%", "--output", out)
    assert few.code == 3
    assert "at most 20% of 6 rows, got 2 (33.33%)" in few.err
    assert list(place.iterdir()) == [sales]

    ended = saltpan(*words, "--bad-rows", "reject", "--max-rejects", "2", "--output", out, "--verify")
    assert ended.code == 0, ended.err
    assert ended.record is not None
    assert {name: ended.record["counters"][name] for name in ("records", "bad_rows")} == {
        "records": 6, "bad_rows": 2
    }  # fmt: skip
    assert ended.record["output"]["bad_rows_by_reason"] == [
        {"input": "input", "reason": "BAD_VALUE", "rows": 1, "examples": [f"{sales} record 2 (amount)"]},
        {"input": "input", "reason": "MALFORMED", "rows": 1, "examples": [f"{sales} record 4"]},
    ]
    assert "12x" not in ended.err
    assert "4 readable rows and 2 bad ones are all records" in ended.err
    bad = [
        ("input", "BAD_VALUE", "amount", str(sales), 2, "B,12x"),
        ("input", "MALFORMED", None, str(sales), 4, "C"),
    ]
    found = contents(place)
    assert sorted(found) == ["out", "out.bad-rows"]
    assert sorted(found["out.bad-rows"], key=repr) == bad
    assert {row[:2] for row in found["out"]} == {("A", 30), ("A", 10)}
    runs = {json.loads((place / name / "_RUN.json").read_text())["run_id"] for name in found}
    assert runs == {ended.record["run_id"]}

    # A run without bad rows, and without the flag: what the former one set aside is not its own.
    sales.write_text("shop,amount\nD,40\n")
    assert saltpan(*words, "--output", out, "--mode", "overwrite").code == 0
    assert [(name, rows[0][:2]) for name, rows in contents(place).items()] == [("out", ("D", 40))]
