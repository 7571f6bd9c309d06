"""The best N rows: of all, within each partition, or of groups; ties, NULL and NaN by one rule."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from a clone

from pydantic import Field
from pyspark.sql import DataFrame

from common.engine.topn_heap import heap_top_n
from common.runs import Columns, Decision, Display, Facts, Inputs, Job, JobSettings, Sql, run_job
from common.transforms.topn import (
    Nan,
    Nulls,
    Order,
    Ties,
    TopN,
    score_name,
    sort_top_n,
    window_top_n,
)
from common.tuning.topn import Strategy, plan_top_n


class Settings(JobSettings):
    """The flags of topn."""

    score: Sql
    """Column to rank by, or an SQL expression (name it: 'a * b AS points'). With --group-by an aggregate."""
    n: int = Field(default=10, ge=0, le=2_000_000_000)
    """Rows to keep, of each partition."""
    group_by: Columns = ()
    """Reduce to one row per combination of these columns first, as in SQL."""
    partition_by: Columns = ()
    """Keep the N best within each combination of these columns."""
    order: Order = "desc"
    """desc: the largest score is best."""
    ties: Ties = "first"
    """Equal scores: first = exactly N rows; all = also those equal to the last; dense = N distinct scores."""
    tie_break: Columns = ()
    """Columns, ascending, that order equal scores. Default: the group-by key, else every output column."""
    nulls: Nulls = "last"
    """Where rows without a score rank."""
    nan: Nan = "largest"
    """NaN ranks above every number, or is dropped."""
    where: Sql | None = None
    """SQL condition on the input rows."""
    columns: Columns = ()
    """Output columns; by default all."""
    rank_column: str = Field(default="rank", min_length=1)
    """Name of the rank, which the output adds."""
    strategy: Strategy = "auto"
    """How; auto chooses and says why."""


class Topn(Job[Settings]):
    """The best N rows: of all, within each partition, or of groups."""

    settings = Settings

    def sample(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """The spread over partitions, which shows skew."""
        return {} if settings.group_by else {"input": settings.partition_by}

    def plan(self, facts: Facts, settings: Settings) -> Decision:
        """A bounded sort where one ranking cuts its ties, else a ranking window."""
        return plan_top_n(
            settings.strategy,
            n=settings.n,
            ties=settings.ties,
            group_by=settings.group_by,
            partition_by=settings.partition_by,
            facts=facts.inputs["input"],
            capabilities=facts.capabilities,
        )

    def build(self, inputs: Inputs, settings: Settings, decision: Decision) -> DataFrame:
        """The answer by the chosen strategy."""
        strategy = {"sort": sort_top_n, "window": window_top_n, "heap": heap_top_n}[decision.choice]
        typed = decision.evidence.get("columns_typed", True)
        return strategy(inputs["input"], replace(_spec(settings), text_scores=typed))

    def plain(self, inputs: Inputs, settings: Settings) -> DataFrame:
        """The answer by a ranking window, which is right for all settings."""
        return window_top_n(inputs["input"], _spec(settings))

    def approximate(self, settings: Settings) -> Sequence[str]:
        """Sums and averages of floats differ in their last digits from run to run."""
        return (score_name(_spec(settings), available=()),) if settings.group_by else ()

    def display(self, settings: Settings, columns: Sequence[str]) -> Display:
        """By partition and rank; the score is what people compare."""
        partitions = tuple(name for name in settings.partition_by if name in columns)
        score = score_name(_spec(settings), available=columns)
        return Display((*partitions, settings.rank_column), (score,) if score in columns else ())


def _spec(settings: Settings) -> TopN:
    return TopN(
        **{
            field.name: getattr(settings, field.name)
            for field in fields(TopN)
            if hasattr(settings, field.name)
        }
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; the exit code is returned."""
    return run_job(Topn(), argv)


if __name__ == "__main__":
    raise SystemExit(main())
