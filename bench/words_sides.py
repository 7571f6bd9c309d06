"""The sides of bench-words: the job's strategies, Spark as a user would write it, DuckDB and Polars.

Every side reads the text file, counts, and consumes all counts without keeping them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.bench_data import literal
from bench.bench_spark import spark_session
from bench.words_data import text_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIDES = ("spark", "duckdb", "polars")
# What is counted: (text, by the default rule); else split on white space.
TASKS = {"split": ("latin", False), "words": ("latin", True), "mixed": ("mixed", True)}
TITLES = {
    "split": "split on white space",
    "words": "words by the Unicode rule, lower case",
    "mixed": "the same of mixed text: half Latin, a quarter Cyrillic, a quarter Chinese",
}
_PATTERN = r"[\p{L}\p{M}\p{N}]+(?:['’\-‐‑][\p{L}\p{M}\p{N}]+)*"  # noqa: RUF001
_LONG_SECONDS = 30
Answer = dict[str, int]


@dataclass(frozen=True)
class Measurement:
    """One way to count, once.

    Attributes:
        task: What was counted.
        side: spark, duckdb or polars.
        way: "auto", "sql" and "rdd" are the job's; "plain sql" and "plain rdd" a user's; "query" the others'.
        seconds: Until all counts were consumed.
        note: What `auto` chose.
        answer: Distinct words, words, and the sum of length and count.
    """

    task: str
    side: str
    way: str
    seconds: float
    note: str = ""
    answer: Answer | None = None


def measure(side: str, tasks: list[str], *, megabytes: int, repeats: int) -> Iterator[Measurement]:
    """Each task by each way of a side, in this process; the best of some runs."""
    ways = {"spark": _spark_ways, "duckdb": _duckdb_ways, "polars": _polars_ways}[side]
    for task, way, count in ways(tasks, megabytes):
        runs: list[Measurement] = []
        while len(runs) < repeats and sum(run.seconds for run in runs) < _LONG_SECONDS:
            started = time.perf_counter()
            answer, note = count()
            runs.append(Measurement(task, side, way, time.perf_counter() - started, note, answer))
        yield replace(min(runs, key=lambda run: run.seconds), answer=runs[0].answer)


Ways = Iterator[tuple[str, str, Callable[[], tuple[Answer, str]]]]


def _spark_ways(tasks: list[str], megabytes: int) -> Ways:
    with spark_session("spark", name="bench words") as spark:
        spark.range(1000).selectExpr("id % 7 AS k").groupBy("k").count().collect()
        for task in tasks:
            text, by_rule = TASKS[task]
            path = text_file(text, megabytes=megabytes)
            for way in ("plain sql", "auto", "sql"):
                yield task, way, partial(_on_spark, spark, way, path, by_rule)
            if not by_rule:
                yield task, "plain rdd", partial(_on_spark, spark, "plain rdd", path, by_rule)


def _on_spark(spark: SparkSession, way: str, path: Path, by_rule: bool) -> tuple[Answer, str]:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    plain = {"plain sql": _plain_sql, "plain rdd": _plain_rdd}.get(way)
    counts, note = (plain(spark, path, by_rule), "") if plain else _by_job(spark, way, path, by_rule)
    seen = Observation()
    sums = {
        "distinct": F.count(F.lit(1)),
        "words": F.sum("count"),
        "letters": F.sum(F.length("word") * F.col("count")),
    }
    observed = counts.observe(seen, *(column.alias(name) for name, column in sums.items()))
    observed.write.format("noop").mode("overwrite").save()
    return {name: int(value) for name, value in seen.get.items()}, note


def _plain_sql(spark: SparkSession, path: Path, by_rule: bool) -> DataFrame:
    from pyspark.sql import functions as F

    lines = spark.read.text(str(path))
    words = F.regexp_extract_all(F.lower("value"), F.lit(_PATTERN), 0) if by_rule else F.split("value", " ")
    return lines.select(F.explode(words).alias("word")).groupBy("word").count()


def _plain_rdd(spark: SparkSession, path: Path, _by_rule: bool) -> DataFrame:
    lines = spark.sparkContext.textFile(str(path))
    pairs = (
        lines.flatMap(lambda line: line.split()).map(lambda word: (word, 1)).reduceByKey(lambda a, b: a + b)
    )
    return spark.createDataFrame(pairs, "word STRING, count BIGINT")


def _by_job(spark: SparkSession, way: str, path: Path, by_rule: bool) -> tuple[DataFrame, str]:
    from common.engine.facts import static_facts
    from common.engine.listing import list_input
    from common.engine.local_session import ship_package
    from common.runs import Facts, ReadInputs
    from common.settings.inputs import InputRequest
    from jobs.word_count import Settings, WordCount

    ship_package(spark)
    asked: dict[str, Any] = {} if by_rule else {"tokenizer": "whitespace", "case": "keep"}
    settings = Settings(strategy=way, **asked)
    listing = list_input(settings.reading(InputRequest("input", (str(path),))))
    facts = {"input": static_facts(listing)}
    cores = spark.sparkContext.defaultParallelism
    job = WordCount()
    decision = job.plan(Facts(facts, capabilities=frozenset({"rdd"}), core_count=cores), settings)
    rows = job.build(ReadInputs(spark, {"input": listing}), settings, decision)
    return getattr(rows, "rows", rows), f"{decision.choice} ({decision.evidence['read']})"


def _duckdb_ways(tasks: list[str], megabytes: int) -> Ways:
    for task in tasks:
        text, by_rule = TASKS[task]
        path = text_file(text, megabytes=megabytes)
        yield task, "query", partial(_on_duckdb, path, by_rule)


def _on_duckdb(path: Path, by_rule: bool) -> tuple[Answer, str]:
    import duckdb

    pattern = _PATTERN.replace("'", "''")
    words = f"regexp_extract_all(lower(line), '{pattern}')" if by_rule else "string_split(line, ' ')"
    columns = "columns = {'line': 'VARCHAR'}, header = false, delim = '\t', quote = '', escape = ''"
    lines = f"read_csv({literal(path)}, {columns})"
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {os.cpu_count()}")
        row = connection.execute(
            f"""SELECT count(*), sum(n), sum(length(word) * n) FROM (
              SELECT word, count(*) AS n FROM (SELECT unnest({words}) AS word FROM {lines}) GROUP BY word)"""
        ).fetchone()
    assert row is not None
    return dict(zip(("distinct", "words", "letters"), map(int, row), strict=True)), ""


def _polars_ways(tasks: list[str], megabytes: int) -> Ways:
    for task in tasks:
        text, by_rule = TASKS[task]
        path = text_file(text, megabytes=megabytes)
        yield task, "query", partial(_on_polars, path, by_rule)


def _on_polars(path: Path, by_rule: bool) -> tuple[Answer, str]:
    import polars as pl

    lines = pl.scan_csv(path, has_header=False, separator="\t", quote_char=None, new_columns=["line"])
    text = pl.col("line")
    words = text.str.to_lowercase().str.extract_all(_PATTERN) if by_rule else text.str.split(" ")
    counts = lines.select(words.explode().alias("word")).group_by("word").agg(pl.len().alias("n"))
    sums = [
        pl.len().alias("distinct"), pl.col("n").sum().alias("words"),
        (pl.col("word").str.len_chars() * pl.col("n")).sum().alias("letters"),
    ]  # fmt: skip
    row = counts.select(sums).collect(engine="streaming").row(0, named=True)
    return {name: int(value) for name, value in row.items()}, ""
