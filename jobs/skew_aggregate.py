"""Aggregations whose tasks stay level under a hot group: in two stages where Spark itself would not."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from a clone

from pydantic import AfterValidator, Field
from pyspark.sql import DataFrame

from common.runs import (
    Columns,
    Decision,
    Display,
    Facts,
    Inputs,
    Job,
    JobSettings,
    Sql,
    Sqls,
    run_job,
)
from common.settings.salts import Salts, salt_count
from common.transforms.aggregate_text import split_aggregates
from common.transforms.two_stage import Aggregation, plain_aggregate, two_stage_aggregate
from common.transforms.two_stage_calls import depends_on_order, kind_of, parsed
from common.tuning.aggregation import Call, Question, Strategy, plan_aggregation


def _split(values: tuple[str, ...]) -> tuple[str, ...]:
    """Every aggregate of every flag, each looked at once."""
    texts = tuple(text for value in values for text in split_aggregates(value))
    for text in texts:
        parsed(text)
    return texts


class Settings(JobSettings):
    """The flags of skew-aggregate."""

    aggregate: Annotated[Sqls, AfterValidator(_split), Field(min_length=1)]
    """SQL aggregate, named by AS: 'count(distinct x) as n'. Repeatable, and several in one with commas."""
    group_by: Columns = ()
    """One row per combination of these columns; without it one row over all."""
    where: Sql | None = None
    """SQL condition on the input rows."""
    strategy: Strategy = "auto"
    """How; auto chooses and says why."""
    salts: Salts = "auto"
    """In how many parts a hot group's values are cut; auto: 32."""


class SkewAggregate(Job[Settings]):
    """Aggregations whose tasks stay level under a hot group."""

    settings = Settings

    def sample(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """The spread over groups, which shows skew."""
        return {"input": settings.group_by} if settings.group_by else {}

    def plan(self, facts: Facts, settings: Settings) -> Decision:
        """Two stages where a group's rows would keep one task busy, Spark's own plan elsewhere."""
        calls = []
        for text in settings.aggregate:
            aggregate = parsed(text)
            calls += [Call(call.text, kind_of(call)) for call in aggregate.calls]
            calls += [Call(name, "whole") for name in aggregate.unknown]
        question = Question(tuple(calls), settings.group_by, salt_count(settings.salts))
        return plan_aggregation(settings.strategy, question, facts)

    def build(self, inputs: Inputs, settings: Settings, decision: Decision) -> DataFrame:
        """The answer by the chosen strategy."""
        if decision.choice == "plain":
            return self.plain(inputs, settings)
        evidence = decision.evidence
        return two_stage_aggregate(
            inputs["input"],
            _spec(settings),
            salts=evidence["salts"],
            hot_rows=evidence["hot_rows"],
            one_in=evidence["one_in"],
            hot_groups=evidence.get("hot_groups"),
        )

    def plain(self, inputs: Inputs, settings: Settings) -> DataFrame:
        """The answer by one aggregation, as Spark plans it."""
        return plain_aggregate(inputs["input"], _spec(settings))

    def approximate(self, settings: Settings) -> Sequence[str]:
        """Sums of floats differ in their last digits from run to run, and so do sketches."""
        aggregates = map(parsed, settings.aggregate)
        return tuple(it.name for it in aggregates if it.unknown or any(map(depends_on_order, it.calls)))

    def display(self, settings: Settings, columns: Sequence[str]) -> Display:
        """By group."""
        return Display(tuple(name for name in settings.group_by if name in columns))


def _spec(settings: Settings) -> Aggregation:
    return Aggregation(settings.aggregate, settings.group_by, settings.where)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; the exit code is returned."""
    return run_job(SkewAggregate(), argv)


if __name__ == "__main__":
    raise SystemExit(main())
