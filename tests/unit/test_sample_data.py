from __future__ import annotations

import csv
import importlib.util
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

DATA = Path(__file__).parents[2] / "data"
COLUMNS = [
    "date",
    "month",
    "day",
    "dep_time",
    "arr_delay",
    "carrier",
    "tailnum",
    "origin",
    "dest",
    "time_hour",
]


@pytest.fixture(scope="session")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("saltpan_sample_data", DATA / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def generated(generator: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make data` has made with this very generator, else what it makes now."""
    if generator.is_complete(DATA / "generated"):
        return DATA / "generated"
    target = tmp_path_factory.mktemp("sample data")
    assert generator.main(["--target", str(target)]) == 0
    return target


@pytest.fixture(scope="session")
def flights(generated: Path) -> pa.Table:
    partitioning = ds.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    return ds.dataset(generated / "flights", partitioning=partitioning).to_table(columns=COLUMNS)


def keys(folder: Path, column: str) -> set[str | None]:
    return set(pq.read_table(folder, columns=[column])[column].to_pylist())


def read_csv(name: str) -> list[dict[str, str]]:
    with (DATA / "samples" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("table", "rows"),
    [("flights", 336_776), ("airlines", 16), ("airports", 1_458), ("planes", 3_322), ("weather", 26_115)],
)
def test_every_table_has_its_rows(generated: Path, table: str, rows: int) -> None:
    assert sum(pq.read_metadata(file).num_rows for file in (generated / table).rglob("*.parquet")) == rows


def test_one_folder_per_day_named_after_its_rows(generated: Path, flights: pa.Table) -> None:
    folders = sorted(folder.name for folder in (generated / "flights").iterdir())
    days = [date.fromordinal(date(2013, 1, 1).toordinal() + number) for number in range(365)]
    assert folders == [f"date={day}" for day in days]
    assert pc.equal(pc.month(flights["date"]), flights["month"]).unique().to_pylist() == [True]
    assert pc.equal(pc.day(flights["date"]), flights["day"]).unique().to_pylist() == [True]


def test_the_date_is_in_the_folder_name_only(generated: Path) -> None:
    schema = pq.read_schema(generated / "flights" / "date=2013-11-27" / "part-0.parquet")
    assert "date" not in schema.names
    assert {schema.field(name).type for name in ("dep_time", "arr_delay", "air_time", "flight")} == {
        pa.int32()
    }
    assert schema.field("time_hour").type == pa.timestamp("us", "UTC")


def test_the_busiest_destinations(flights: pa.Table) -> None:
    assert Counter(flights["dest"].to_pylist()).most_common(10) == [
        ("ORD", 17_283),
        ("ATL", 17_215),
        ("LAX", 16_174),
        ("BOS", 15_508),
        ("MCO", 14_082),
        ("CLT", 14_064),
        ("SFO", 13_331),
        ("FLL", 12_055),
        ("MIA", 11_728),
        ("DCA", 9_705),
    ]


@pytest.mark.parametrize(
    ("column", "nulls"), [("tailnum", 2_512), ("dep_time", 8_255), ("arr_delay", 9_430), ("dest", 0)]
)
def test_na_is_null(flights: pa.Table, column: str, nulls: int) -> None:
    assert flights[column].null_count == nulls
    assert "NA" not in flights[column].unique().to_pylist()


def test_flights_that_match_no_plane_and_no_airport(generated: Path, flights: pa.Table) -> None:
    planes, airports = keys(generated / "planes", "tailnum"), keys(generated / "airports", "faa")
    assert sum(tail not in planes for tail in flights["tailnum"].to_pylist()) == 52_606
    assert sum(dest not in airports for dest in flights["dest"].to_pylist()) == 7_602


def test_hours_are_instants_in_utc(flights: pa.Table) -> None:
    # 05:15 in New York, in winter.
    assert flights["time_hour"][0].as_py() == datetime(2013, 1, 1, 10, tzinfo=UTC)


def test_a_second_run_has_nothing_to_do(
    generator: ModuleType, generated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = (generated / "manifest.json").stat().st_mtime_ns
    assert generator.main(["--target", str(generated)]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert (generated / "manifest.json").stat().st_mtime_ns == written
    assert not list(generated.glob(".partial-*"))


def test_what_is_missing_or_of_another_generator_is_not_complete(
    generator: ModuleType, generated: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(generated, copy)
    assert generator.is_complete(copy)
    lost = copy / "flights" / "date=2013-02-28" / "part-0.parquet"
    lost.rename(tmp_path / "aside")
    assert not generator.is_complete(copy)
    (tmp_path / "aside").rename(lost)
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "generator": "another"}))
    assert not generator.is_complete(copy)
    assert not generator.is_complete(tmp_path / "absent")


def test_an_interrupted_step_leaves_the_old_and_no_leavings(generator: ModuleType, tmp_path: Path) -> None:
    place = tmp_path / "table"
    place.mkdir()
    (place / "old").touch()

    def interrupted() -> None:
        with generator._replaced(place) as folder:
            folder.mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["table", "table/old"]


def test_a_wrong_number_of_rows_stops_it(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fifteen(table: str) -> bytes:
        return b"carrier,name\n" + b"".join(b"%d,x\n" % number for number in range(15))

    monkeypatch.setattr(generator, "source_text", fifteen)
    monkeypatch.setattr(generator, "SCHEMAS", {"airlines": generator.SCHEMAS["airlines"]})
    assert generator.main(["--target", str(tmp_path)]) == 3
    assert "rows of airlines: expected 16, got 15" in capsys.readouterr().err
    assert not (tmp_path / "airlines").exists()


def test_the_committed_samples_are_what_the_generator_makes(generator: ModuleType, tmp_path: Path) -> None:
    assert generator.main(["--samples", str(tmp_path)]) == 0
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    committed = {file.name: file.read_bytes() for file in (DATA / "samples").iterdir()}
    assert made == committed
    assert sum(map(len, committed.values())) < 200_000


def nulls(rows: Sequence[dict[str, str]], column: str) -> int:
    return sum(row[column] == "" for row in rows)


def test_the_samples_hold_nulls_ties_and_keys_that_match_nothing() -> None:
    flights = read_csv("flights_sample.csv")
    planes = {row["tailnum"] for row in read_csv("planes_sample.csv")}
    assert len(flights) == 501
    assert (nulls(flights, "dep_time"), nulls(flights, "tailnum")) == (10, 1)
    counts = Counter(row["dest"] for row in flights)
    assert {dest for dest, count in counts.items() if count == 20} == {"CLT", "DCA", "FLL", "SFO"}
    assert sum(row["tailnum"] not in planes for row in flights) == 76
