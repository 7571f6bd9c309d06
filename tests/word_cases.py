"""Word counts of literal files by each way of counting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from common.engine.facts import static_facts
from common.engine.failures import translated
from common.engine.listing import Listing, list_input
from common.runs import Counted, ReadInputs
from common.settings.inputs import InputRequest
from common.tuning.facts import Facts
from jobs.word_count import Settings, WordCount
from tests.frames import rows_of

WAYS = ("ranges", "rows", "sql", "rdd")
JOB = WordCount()


@dataclass(frozen=True)
class Case:
    """Files, and the settings they are counted with."""

    spark: SparkSession
    folder: Path

    def listing(self, settings: Settings) -> Listing:
        return list_input(settings.reading(InputRequest("input", (str(self.folder),))))

    def build(self, way: str, **asked: Any) -> tuple[DataFrame, Counted | None]:
        settings = Settings(strategy="arrow" if way in ("ranges", "rows") else way, **asked)
        listing = self.listing(settings)
        capabilities = frozenset() if way == "rows" else frozenset({"rdd"})
        facts = Facts({"input": static_facts(listing)}, capabilities=capabilities, core_count=2)
        decision = JOB.plan(facts, settings)
        assert decision.evidence["read"] == ("ranges" if way == "ranges" else "rows")
        answer = JOB.build(ReadInputs(self.spark, {"input": listing}), settings, decision)
        return (answer.rows, answer) if isinstance(answer, Counted) else (answer, None)

    def rows(self, way: str, **asked: Any) -> list[tuple[Any, ...]]:
        with translated():
            return sorted(rows_of(self.build(way, **asked)[0]), key=repr)

    def all_ways(self, **asked: Any) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        for way in WAYS:
            yield way, self.rows(way, **asked)


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
