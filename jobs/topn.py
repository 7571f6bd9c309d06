"""The best N rows: of all, within each partition, or of groups; ties, NULL and NaN by one rule."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from a clone

from pydantic import Field
from pyspark.sql import DataFrame

from common.core.errors import SuiteError, UsageError
from common.engine.topn_heap import heap_top_n
from common.runs import (
    Columns,
    Decision,
    Display,
    Facts,
    Flag,
    Inputs,
    Job,
    JobSettings,
    Sql,
    Sqls,
    run_job,
)
from common.transforms.topn import sort_top_n, window_top_n
from common.transforms.topn_aggregate import aggregate_top_n
from common.transforms.topn_prune import prune_top_n
from common.transforms.topn_rows import Nan, Nulls, Order, Ties, TopN, score_names
from common.transforms.topn_share import SHARE, with_share
from common.tuning.topn import Question, Strategy, plan_top_n


class Settings(JobSettings):
    """The flags of topn."""

    score: Annotated[Sqls, Field(min_length=1)]
    """Column to rank by, or an SQL expression (name it: 'a * b AS points'). With --group-by an aggregate.
    Repeat it for further scores, which rank rows whose scores before them are equal."""
    n: int = Field(default=10, ge=0, le=2_000_000_000)
    """Rows to keep, of each partition."""
    group_by: Columns = ()
    """Reduce to one row per combination of these columns first, as in SQL."""
    partition_by: Columns = ()
    """Keep the N best within each combination of these columns."""
    order: Annotated[tuple[Order, ...], Field(min_length=1)] = ("desc",)
    """desc: the largest score is best. Once for all scores, or once for each."""
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
    with_share: Flag = False
    """Add each row's share of the total score, and one row `others` so that the shares add up to 1."""
    strategy: Strategy = "auto"
    """How; auto chooses and says why."""

    def problems(self) -> Iterable[SuiteError]:
        """As many orders as scores, or one for all."""
        if len(self.order) not in (1, len(self.score)):
            got, scores = f"{len(self.order)} orders", len(self.score)
            yield UsageError(
                "flag", "--order", expected=f"one, or one for each of the {scores} scores", got=got
            )


class Topn(Job[Settings]):
    """The best N rows: of all, within each partition, or of groups."""

    settings = Settings

    def sample(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """The spread over partitions, which shows skew."""
        return {} if settings.group_by else {"input": settings.partition_by}

    def plan(self, facts: Facts, settings: Settings) -> Decision:
        """Bounds and a second pass where that saves work, a bounded sort or a ranking window elsewhere."""
        question = Question(
            n=settings.n,
            ties=settings.ties,
            score=settings.score[0],
            group_by=settings.group_by,
            partition_by=settings.partition_by,
            columns=settings.columns,
        )
        return plan_top_n(settings.strategy, question, facts)

    def build(self, inputs: Inputs, settings: Settings, decision: Decision) -> DataFrame:
        """The answer by the chosen strategy."""
        known = {
            name: decision.evidence[name]
            for name in ("one_in", "null_keys", "many_groups")
            if name in decision.evidence
        }
        by_choice: dict[str, Callable[[DataFrame, TopN], DataFrame]] = {
            "sort": sort_top_n,
            "window": partial(window_top_n, salts=decision.evidence.get("salts", 1)),
            "prune": partial(prune_top_n, **known),
            "aggregate": aggregate_top_n,
            "heap": heap_top_n,
        }
        typed = decision.evidence.get("columns_typed", True)
        spec = replace(_spec(settings), text_scores=typed)
        return _finished(by_choice[decision.choice](inputs["input"], spec), inputs, settings, spec)

    def plain(self, inputs: Inputs, settings: Settings) -> DataFrame:
        """The answer by a ranking window, which is right for all settings."""
        spec = _spec(settings)
        return _finished(window_top_n(inputs["input"], spec), inputs, settings, spec)

    def approximate(self, settings: Settings) -> Sequence[str]:
        """Sums and averages of floats differ in their last digits from run to run."""
        scores = score_names(_spec(settings), available=())
        summed = scores if settings.group_by else scores[:1] if settings.with_share else ()
        return (*summed, *((SHARE,) if settings.with_share else ()))

    def display(self, settings: Settings, columns: Sequence[str]) -> Display:
        """By partition and rank; the score is what people compare."""
        partitions = tuple(name for name in settings.partition_by if name in columns)
        scores = score_names(_spec(settings), available=columns)
        shown = [*scores, *((SHARE,) if settings.with_share else ())]
        return Display((*partitions, settings.rank_column), tuple(name for name in shown if name in columns))


def _spec(settings: Settings) -> TopN:
    """The settings as the transform takes them."""
    alike = {
        field.name: getattr(settings, field.name) for field in fields(TopN) if hasattr(settings, field.name)
    }
    orders = settings.order * len(settings.score) if len(settings.order) == 1 else settings.order
    then_by = tuple(zip(settings.score[1:], orders[1:], strict=True))
    return TopN(**{**alike, "score": settings.score[0], "order": orders[0], "then_by": then_by})


def _finished(answer: DataFrame, inputs: Inputs, settings: Settings, spec: TopN) -> DataFrame:
    return with_share(answer, inputs["input"], spec) if settings.with_share else answer


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; the exit code is returned."""
    return run_job(Topn(), argv)


if __name__ == "__main__":
    raise SystemExit(main())
