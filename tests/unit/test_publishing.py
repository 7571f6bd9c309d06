"""The end of a run without Spark: what is beside an output, and what a strict reader's error becomes."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from common.core.errors import DifferenceError, JobError, SuiteError, UsageError, ValueMalformedError
from common.engine.data_failures import EXPECTED_RECORDS
from common.engine.storage import LocalStorage
from common.runs import bad_rows, publishing
from common.runs.bad_rows import check_all_read, pointing_at
from common.runs.companions import BAD_ROWS, REJECTS
from common.runs.job import Rejects
from common.runs.publishing import Writing, open_writing
from common.runs.recovery import RUN_FILE
from common.runs.staging import StagedOutput
from common.settings.inputs import InputRequest


def opened(
    output: Path, stack: ExitStack, *, has_rejects: bool = True, bad: str = "reject", read: str = "x.csv"
) -> Writing:
    storage = LocalStorage()
    staged = StagedOutput(str(output), run_id="r2", mode="overwrite", storage=storage)
    settings: Any = SimpleNamespace(mode="overwrite", bad_rows=bad, output_format="parquet")
    return open_writing(
        SimpleNamespace(has_rejects=lambda _: has_rejects, name="job"),  # type: ignore[arg-type]
        SimpleNamespace(settings=settings, inputs=[InputRequest("input", (read,))]),  # type: ignore[arg-type]
        SimpleNamespace(run_id="r2"),  # type: ignore[arg-type]
        output=stack.enter_context(staged),
        storage=storage,
        stack=stack,
    )


def of_a_run(folder: Path) -> Path:
    folder.mkdir()
    (folder / RUN_FILE).write_text(json.dumps({"run_id": "r1"}))
    return folder


def test_places_are_made_for_what_is_wanted_and_for_what_becomes_stale(tmp_path: Path) -> None:
    with ExitStack() as stack:
        assert set(opened(tmp_path / "a", stack).companions) == {REJECTS, BAD_ROWS}
        assert not opened(tmp_path / "b", stack, has_rejects=False, bad="fail").companions
        of_a_run(tmp_path / "c.bad-rows")
        (tmp_path / "c.rejects").mkdir()  # nobody says of which run
        assert set(opened(tmp_path / "c", stack, has_rejects=False, bad="fail").companions) == {BAD_ROWS}


@pytest.mark.parametrize("bad", ["fail", "reject"])
def test_what_a_run_reads_is_not_taken_away_as_stale(tmp_path: Path, bad: str) -> None:
    read = of_a_run(tmp_path / "out.bad-rows")
    with ExitStack() as stack, pytest.raises(UsageError, match=r"out\.bad-rows"):
        opened(tmp_path / "out", stack, has_rejects=False, bad=bad, read=str(read))
    assert (read / RUN_FILE).exists()


def test_rejects_are_as_many_as_were_counted(tmp_path: Path) -> None:
    rejects = Rejects(rows=SimpleNamespace(), counter="missing")  # type: ignore[arg-type]
    with ExitStack() as stack, patch.object(publishing, "write_rows", return_value=3) as written:
        writing = opened(tmp_path / "out", stack)
        publishing._stage_rejects(rejects, writing, count=0)
        assert (written.call_count, writing.companions[REJECTS].rows) == (0, 0)
        with pytest.raises(JobError, match="the 2 rows that were counted, got 3 rows"):
            publishing._stage_rejects(rejects, writing, count=2)
        assert not writing.companions[REJECTS].is_staged
        publishing._stage_rejects(rejects, writing, count=3)
        assert writing.companions[REJECTS].rows == 3


def test_a_second_attempt_keeps_bad_rows_and_nothing_else_of_the_first(tmp_path: Path) -> None:
    with ExitStack() as stack:
        writing = opened(tmp_path / "out", stack)
        places = [writing.output.staging_path]
        for companion in writing.companions.values():
            companion.rows = 1
            places.append(companion.staging_path)
        for place in places:
            Path(place).mkdir()
        publishing.restart(writing, None)
        assert [Path(place).exists() for place in places] == [False, False, True]
        assert [writing.companions[suffix].rows for suffix in (REJECTS, BAD_ROWS)] == [0, 1]


@pytest.mark.parametrize(("readable", "fits"), [(3, True), (2, False), (4, False)])
def test_every_record_is_readable_or_bad(readable: int, fits: bool) -> None:
    frames: Any = {"a": SimpleNamespace(count=lambda: readable), "b": SimpleNamespace(count=lambda: 1)}
    record: Any = SimpleNamespace(counters={"records": 6, "bad_rows": 2})
    if fits:
        check_all_read(["a", "b"], frames, record)
    else:
        with pytest.raises(DifferenceError, match=f"6 records, got {readable + 1} readable and 2 bad"):
            check_all_read(["a", "b"], frames, record)


STRICT = ValueMalformedError("file", "f.csv", expected=EXPECTED_RECORDS, got="[1,null]")
ROW = {"record": 1_002, "file": "/in/f.csv", "columns": "a, b", "raw": "x" * 200}


def raised(error: SuiteError, found: Any, *formats: str) -> SuiteError:
    """What comes out of `pointing_at` for an error, when the second look finds this, or fails with it."""
    listings: Any = [SimpleNamespace(format=name) for name in formats]
    look = {"side_effect": found} if isinstance(found, Exception) else {"return_value": found}
    with (
        patch.object(bad_rows, "first_bad", **look),
        pytest.raises(SuiteError) as caught,
        pointing_at(listings, None),  # type: ignore[arg-type]
    ):
        raise error
    return caught.value


def test_a_strict_error_names_the_record_and_its_columns() -> None:
    pointed = raised(STRICT, ROW, "parquet", "csv")
    assert pointed.name == "record 1,002 of /in/f.csv"
    assert pointed.expected == "values of the declared types in a, b"
    assert pointed.got == "x" * 120
    whole = raised(STRICT, {**ROW, "record": None, "columns": None}, "json")
    assert (whole.name, whole.expected) == (
        "/in/f.csv",
        "a record of the format, with a field for each column",
    )


def test_else_the_error_stays_what_it_is() -> None:
    assert raised(STRICT, ROW, "parquet") is STRICT
    assert raised(STRICT, None, "csv") is STRICT
    assert raised(STRICT, UsageError("flag", "f", expected="this", got="that"), "csv") is STRICT
    other = ValueMalformedError("value", "x", expected="INT", got="STRING")
    assert raised(other, ROW, "csv") is other
