"""Rows of the inputs that cannot be read as declared: set aside before the answer is made."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import DifferenceError, SuiteError, ValueMalformedError
from common.engine.data_failures import EXPECTED_RECORDS, SET_ASIDE
from common.engine.failures import translated
from common.engine.handle import Engine
from common.engine.listing import Listing
from common.engine.sifted_rows import RECORDS, bad_row_summary, first_bad
from common.engine.writer import write_rows
from common.runs.acceleration import without_comet
from common.runs.companions import Companion
from common.runs.inputs import ReadInputs
from common.runs.job import Inputs
from common.runs.record import RunRecord
from common.settings.job import JobSettings
from common.tuning.rejects import check_rejects

_WHOLE = "a record of the format, with a field for each column"
_SHOWN = 120
_LOG = logging.getLogger("saltpan.run")
_HINT = "look at the rows without a limit, in an output of their own"


def set_aside(
    names: Sequence[str],
    frames: ReadInputs,
    *,
    engine: Engine,
    settings: JobSettings,
    record: RunRecord,
    place: Companion,
) -> list[dict[str, Any]]:
    """Stage the bad rows of the inputs, and refuse more than are allowed.

    Args:
        names: The inputs whose bad rows are rejected.
        frames: The inputs.
        engine: The session's.
        settings: The job's.
        record: Takes their number and that of all records, as counters.
        place: Where they are staged.

    Returns:
        For each input and reason: `input, reason, rows`, and the places of the first ones.

    Raises:
        RejectsError: there are more than --max-rejects.

    Plan:
        One pass over each of these inputs, in which every column is parsed; none over what it finds but to
        count it by reason.
    """
    found = [frames.bad_rows(name) for name in names]
    rows = reduce(DataFrame.unionByName, [frame for frame, _ in found])
    engine.describe("bad rows")
    with without_comet(engine):
        count = write_rows(rows, place.staging_path, file_format=settings.output_format)
        records = sum(one.settle().values[RECORDS.name] for _, counters in found for one in counters)
        reasons = []
        if count:
            reasons = bad_row_summary(engine.spark, place.files(), file_format=settings.output_format)
    place.rows = count
    record.counters.update({"records": records, "bad_rows": count})
    _say(reasons, count=count, records=records)
    if settings.max_rejects is not None:
        check_rejects(count, records, limit=settings.max_rejects, hint=_HINT)
    return reasons


def check_all_read(names: Sequence[str], frames: Inputs, record: RunRecord) -> None:
    """Prove that every record is either readable or set aside: for --verify.

    Raises:
        DifferenceError: the numbers do not add up.

    Plan:
        An action for each of these inputs.
    """
    readable = sum(frames[name].count() for name in names)
    records, bad = (int(record.counters[name] or 0) for name in ("records", "bad_rows"))
    if readable + bad != records:
        raise DifferenceError(
            "inputs",
            ", ".join(names),
            expected=f"{records:,} records",
            got=f"{readable:,} readable and {bad:,} bad ones",
            hint="nothing was published; please report this",
        )
    _LOG.info("verified: %s readable rows and %s bad ones are all records", f"{readable:,}", f"{bad:,}")


@contextmanager
def pointing_at(listings: Collection[Listing], spark: SparkSession) -> Iterator[None]:
    """Say of the record at which a strict reader stopped where it is, and what is wrong with it.

    Raises:
        ValueMalformedError: naming record and columns; Spark names the file, and shows what it made of it.

    Plan:
        No action, but after such a failure one that reads up to the record.
    """
    try:
        with translated():
            yield
    except ValueMalformedError as error:
        if error.expected != EXPECTED_RECORDS:
            raise
        pointed = None
        with suppress(PySparkException, SuiteError):
            pointed = _first(listings, spark)
        raise (pointed or error) from error.__cause__


def _first(listings: Collection[Listing], spark: SparkSession) -> ValueMalformedError | None:
    for listing in listings:
        row = first_bad(spark, listing) if listing.format in ("csv", "json") else None
        if row is not None:
            number = f"record {row['record']:,} of " if row["record"] is not None else ""
            expected = f"values of the declared types in {row['columns']}" if row["columns"] else _WHOLE
            return ValueMalformedError(
                "input", f"{number}{row['file']}", expected=expected, got=row["raw"][:_SHOWN], hint=SET_ASIDE
            )
    return None


def _say(reasons: Sequence[dict[str, Any]], *, count: int, records: int) -> None:
    _LOG.info("bad rows: %s of %s records", f"{count:,}", f"{records:,}")
    for reason in reasons:
        places = "; ".join(reason["examples"])
        more = ", …" if reason["rows"] > len(reason["examples"]) else ""
        said = f"{reason['input']}: {reason['reason']} {reason['rows']:,}: {places}{more}"
        _LOG.warning("bad rows of %s", said)
