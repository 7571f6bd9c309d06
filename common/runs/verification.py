"""The proof that the planned path gives the plain path's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, FloatType

from common.core.errors import DifferenceError
from common.transforms.fingerprint import HASH_SUM, ROW_COUNT, fingerprint, float_differences

TOLERANCE_RATIO = 1e-9


@dataclass(frozen=True)
class Fingerprint:
    """Rows as a number of them, the sum of their hashes, and the columns with their types."""

    row_count: int
    hash_sum: str
    schema: str

    def __str__(self) -> str:
        return f"{self.row_count:,} rows, hash sum {self.hash_sum}"


def verify(
    planned: DataFrame,
    plain: DataFrame,
    *,
    approximate: Sequence[str] = (),
    plainly: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> dict[str, Any]:
    """Compare the two answers; return what the run record says about it.

    Args:
        planned: The answer by the chosen strategy.
        plain: The answer in the plain form.
        approximate: Columns from float aggregation: compared by key within a relative 1e-9 if they hold
            floats, exactly otherwise.
        plainly: Within it the engine runs without an accelerator; the plain side runs in it.

    Raises:
        DifferenceError: the answers differ; names both fingerprints.

    Plan:
        An action on each side (two with `approximate` floats). Both run in full.
    """
    floats = [name for name in approximate if _holds_floats(planned, name)]
    exact = [name for name in planned.columns if name not in floats]
    ours = _fingerprint(planned, exact)
    with plainly():
        theirs = _fingerprint(plain, exact)
    report: dict[str, Any] = {
        "planned": asdict(ours),
        "plain": asdict(theirs),
        "compared_within_1e-9": floats,
    }
    if ours != theirs:
        raise _difference(ours, theirs)
    if floats:
        report["float_differences"] = _refuse_float_differences(planned, plain, exact, floats)
    return report


def _holds_floats(df: DataFrame, name: str) -> bool:
    return name in df.columns and isinstance(df.schema[name].dataType, (FloatType, DoubleType))


def _fingerprint(df: DataFrame, columns: Sequence[str]) -> Fingerprint:
    row = fingerprint(df, columns=columns).first()
    assert row is not None  # a global aggregate has one row
    schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in df.schema.fields)
    return Fingerprint(int(row[ROW_COUNT]), str(row[HASH_SUM]), schema)


def _refuse_float_differences(
    planned: DataFrame, plain: DataFrame, exact: Sequence[str], floats: Sequence[str]
) -> int:
    row = float_differences(
        planned, plain, keys=exact, columns=floats, tolerance_ratio=TOLERANCE_RATIO
    ).first()
    assert row is not None  # a global aggregate has one row
    count = int(row[ROW_COUNT])
    if count:
        raise DifferenceError(
            "answer",
            ", ".join(floats),
            expected="the plain plan's values within a relative 1e-9",
            got=f"{count:,} rows that differ by more",
            hint="nothing was published; run with --strategy of the plain plan and report this",
        )
    return count


def _difference(ours: Fingerprint, theirs: Fingerprint) -> DifferenceError:
    same_schema = ours.schema == theirs.schema
    return DifferenceError(
        "answer",
        "planned",
        expected=f"the plain plan's {theirs if same_schema else theirs.schema}",
        got=str(ours if same_schema else ours.schema),
        hint="nothing was published; the plain plan's answer is right, please report this",
    )
