"""Runs in a process of its own: one session, plain or with Comet, and what it answers, as JSON.

comet_probe.py SETTINGS.json DATA_FOLDER OUT.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from common.engine.comet import is_active, plain_spark, reasons_against, unsafe_footers, went_through
from common.engine.plans import read_plan
from common.transforms.fingerprint import fingerprint
from common.transforms.topn import sort_top_n, window_top_n
from common.transforms.topn_rows import TopN

SLIDE = "OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"

# Queries that Comet answers otherwise: name to (query, settings that take the guard away).
DIFFERENCES: dict[str, tuple[str, dict[str, str]]] = {
    "sliding sum": (f"SELECT id, sum(d) {SLIDE} AS x FROM hard WHERE id < 5", {}),
    "sliding avg after NaN": (f"SELECT id, avg(v) {SLIDE} AS x FROM hard WHERE id < 4", {}),
    "sliding sum of bigint": (f"SELECT id, sum(big) {SLIDE} AS x FROM hard WHERE id < 3", {}),
    "range overflow": (
        "SELECT id, count(*) OVER (ORDER BY i RANGE BETWEEN CURRENT ROW AND 10 FOLLOWING) AS x FROM hard",
        {},
    ),
    "zeros in a set": (
        "SELECT size(collect_set(z)) AS x FROM hard WHERE id < 2",
        {"spark.comet.exec.strictFloatingPoint": "false"},
    ),
    "float to text": ("SELECT id, CAST(f AS STRING) AS x FROM hard WHERE id = 0", {}),
    "double to text": ("SELECT id, concat(w, '') AS x FROM hard WHERE id = 0", {}),
    "double to decimal": ("SELECT id, CAST(w AS DECIMAL(30, 2)) AS x FROM hard WHERE id = 0", {}),
    "bytes through text": ("SELECT hex(CAST(CAST(b AS STRING) AS BINARY)) AS x FROM hard WHERE id = 0", {}),
    "power": (
        "SELECT sum(hash(pow(id, 0.3), exp(id / 7), ln(id + 2))) AS x FROM many",
        {f"spark.comet.expression.{name}.enabled": "true" for name in ("Pow", "Exp", "Log")},
    ),
    "legacy calendar": ("SELECT CAST(d AS STRING) AS x FROM legacy", {}),
    "milliseconds": ("SELECT id, m IS NULL AS x FROM millis WHERE id > 0", {}),
    "text that is not UTF-8": ("SELECT id, octet_length(t) AS x FROM bad_text", {}),
}
ZONE = ("SELECT hour(t) AS x FROM later", {"spark.sql.session.timeZone": "America/New_York"})

BUSIEST = TopN("count(*) AS flights", n=10, group_by=("dest",))
HARD_TOPN = {
    f"{ties} {order} {nulls}": TopN(
        "z", n=3, partition_by=("g",), ties=ties, order=order, nulls=nulls, columns=("g", "z", "id")
    )
    for ties in ("first", "all", "dense")
    for order, nulls in (("desc", "last"), ("asc", "first"))
}


def main(settings_file: str, folder: str, out: str) -> None:
    settings: dict[str, str] = json.loads(Path(settings_file).read_text())
    builder = SparkSession.builder.appName("comet-probe")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        answers = _answers(spark, Path(folder))
    finally:
        spark.stop()
    Path(out).write_text(json.dumps(answers))


def _answers(spark: SparkSession, folder: Path) -> dict[str, object]:
    spark.sparkContext.setLogLevel("OFF")
    if not any(folder.iterdir()):
        return {"active": is_active(spark)}
    for path in folder.glob("*.parquet"):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
    jvm = spark.sparkContext._jvm
    answers: dict[str, object] = {
        "active": is_active(spark),
        "java": str(jvm.java.lang.System.getProperty("java.specification.version")),
        "off_heap": spark.conf.get("spark.memory.offHeap.size", None),
        "topn": _topn(spark, folder),
    }
    busiest = sort_top_n(_flights(spark, folder), BUSIEST).orderBy("rank").collect()
    answers["busiest"] = [list(row) for row in busiest]
    answers["unguarded"] = {name: _without_guard(spark, *case) for name, case in DIFFERENCES.items()}
    answers["unguarded"] |= {"time zone": _without_guard(spark, *ZONE)}
    answers["guarded"] = {name: _guarded(spark, query, folder) for name, (query, _) in DIFFERENCES.items()}
    return answers


def _flights(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(json.loads((folder / "flights.json").read_text()))


def _topn(spark: SparkSession, folder: Path) -> dict[str, dict[str, object]]:
    hard, flights = spark.table("hard"), _flights(spark, folder)
    frames = {f"window {name}": window_top_n(hard, spec) for name, spec in HARD_TOPN.items()}
    every = TopN("z", n=4, tie_break=("id",), columns=("z", "id"))
    frames |= {"sort": sort_top_n(hard, every), "sort by window": window_top_n(hard, every)}
    frames |= {"busiest by window": window_top_n(flights, BUSIEST)}
    worst = TopN("arr_delay", n=3, partition_by=("carrier",), ties="all")
    frames |= {"worst flights": window_top_n(flights, worst)}
    return {name: _seen(frame) for name, frame in frames.items()}


def _seen(frame: DataFrame) -> dict[str, object]:
    nodes = [node.name for node in read_plan(frame).nodes]
    row = fingerprint(frame).collect()[0]
    return {
        "native": sorted({name for name in nodes if name.startswith("Comet")}),
        "fingerprint": [row[0], str(row[1])],
        "reasons": reasons_against(frame),
    }


def _without_guard(spark: SparkSession, query: str, settings: dict[str, str]) -> object:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        return _collected(spark, query)
    except Exception as error:  # noqa: BLE001  that it fails, and in whose words, is the answer
        return _said(error)
    finally:
        for key, former in before.items():
            spark.conf.unset(key) if former is None else spark.conf.set(key, former)


def _guarded(spark: SparkSession, query: str, folder: Path) -> dict[str, object]:
    files = [str(path) for path in folder.glob("*.parquet") if path.stem in query.split()]
    reasons = unsafe_footers(files) + reasons_against(spark.sql(query))
    try:
        with plain_spark(spark, reasons):
            return {"reasons": reasons, "answer": _collected(spark, query)}
    except Exception as error:  # noqa: BLE001  see above
        if not went_through(error):
            return {"reasons": reasons, "answer": _said(error)}
    with plain_spark(spark, ["it failed"]):
        try:
            return {"reasons": ["it failed"], "answer": _collected(spark, query)}
        except Exception as error:  # noqa: BLE001  see above
            return {"reasons": ["it failed"], "answer": _said(error)}


def _collected(spark: SparkSession, query: str) -> list[list[str]]:
    return sorted([str(value) for value in row] for row in spark.sql(query).collect())


def _said(error: Exception) -> str:
    words = [word for word in str(error).replace("[", " ").replace("]", " ").split() if word.isupper()]
    return f"error {next((word for word in words if '_' in word), type(error).__name__)}"


if __name__ == "__main__":
    main(*sys.argv[1:])
