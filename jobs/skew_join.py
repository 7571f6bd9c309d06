"""A join that stays level under skew: hot keys are found and treated apart; its rows are the plain join's."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from a clone

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from common.core.errors import SuiteError, UsageError
from common.core.units import parse_bytes
from common.runs import Columns, Decision, Facts, Inputs, Job, JobSettings, run_job
from common.settings.job import Size
from common.settings.key_files import read_keys, remembered_keys, remembered_text
from common.transforms.hot_keys import hot_key_counts, hot_keys_by_sketch
from common.transforms.join_sides import How, JoinSpec, joined_sides
from common.transforms.skew_join import Treatment, plain_join, skew_join
from common.tuning.hot_key_search import plan_search
from common.tuning.skew import Strategy, plan_join
from common.tuning.skew_facts import JoinQuestion

_LOG = logging.getLogger("saltpan.run")


class Settings(JobSettings):
    """The flags of skew-join."""

    on: Annotated[Columns, Field(min_length=1)]
    """Key columns: K where both sides call it so, K=K2 where the right side calls it K2."""
    how: How = "inner"
    """Which rows are kept; semi and anti give left rows only."""
    strategy: Strategy = "auto"
    """How; auto chooses and says why."""
    salts: Literal["auto"] | int = "auto"
    """Parts that each salted key is split into; auto: by its share."""
    hot_share: float = Field(default=0.01, ge=0.001, le=1)
    """A key is hot from this share of a side's rows on."""
    max_broadcast_bytes: Size = "256m"
    """The most that may be broadcast, as it is in memory."""
    replication_budget: float = Field(default=2.0, ge=1)
    """Rows of both sides with the copies that salts make, as a multiple of those without, at most."""
    drop_keys: Columns = ()
    """Keys whose rows are left out on both sides, a,b or @FILE with one in a line; parts of a key: a|b."""
    select: Columns = ()
    """Output columns; by default all."""
    hot_keys: Annotated[str, Field(pattern=r"^(auto|@.+)$")] = "auto"
    """@FILE: start from the hot keys that an earlier run has kept there, and keep today's."""

    def problems(self) -> Iterable[SuiteError]:
        """A salt count is a number of parts."""
        if isinstance(self.salts, int) and not 1 <= self.salts <= 10_000:
            yield UsageError("flag", "--salts", expected="auto, or 1 to 10000", got=str(self.salts))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The key columns of both sides."""
        split = (name.partition("=") for name in self.on)
        return tuple((left, right or left) for left, _, right in split)

    @property
    def hot_keys_file(self) -> str | None:
        """Where hot keys are kept between runs."""
        return self.hot_keys[1:] if self.hot_keys.startswith("@") else None


class SkewJoin(Job[Settings]):
    """A join that stays level under skew: hot keys are found and treated apart."""

    settings = Settings
    inputs = ("left", "right")

    def sample(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """The spread of the keys on both sides."""
        return {"left": [a for a, _ in settings.pairs], "right": [b for _, b in settings.pairs]}

    def probe(self, inputs: Inputs, facts: Facts, settings: Settings) -> Mapping[str, DataFrame]:
        """The exact rows of hot keys, where they can change the plan, and of those to drop."""
        search = plan_search(settings.strategy, _question(settings), facts, remembered=_remembered(settings))
        sides = joined_sides(inputs["left"], inputs["right"], JoinSpec(settings.pairs))
        frames: dict[str, DataFrame] = {}
        if search.how != "none" and sides.is_hashable:
            uncounted = [name for name in self.inputs if facts.inputs[name].about_row_count is None]
            frames = {f"{name}_rows": inputs[name].agg(F.count(F.lit(1)).alias("rows")) for name in uncounted}
            frames["hot_keys"] = (
                hot_key_counts(sides, search.keys)
                if search.how == "count"
                else hot_keys_by_sketch(sides, share=settings.hot_share)
            )
        if settings.drop_keys:
            frames["dropped"] = hot_key_counts(sides, read_keys(settings.drop_keys))
        return frames

    def plan(self, facts: Facts, settings: Settings) -> Decision:
        """A broadcast where one side is small; hot keys apart where that saves work or waiting."""
        return plan_join(settings.strategy, _question(settings), facts)

    def build(self, inputs: Inputs, settings: Settings, decision: Decision) -> DataFrame:
        """The join with hot keys on their ways."""
        left, right, spec = inputs["left"], inputs["right"], _spec(settings)
        for cast in joined_sides(left, right, spec).casts:
            _LOG.info("key cast: %s", cast)
        return skew_join(left, right, spec, _treatment(decision.evidence))

    def plain(self, inputs: Inputs, settings: Settings) -> DataFrame:
        """The join as Spark does it."""
        return plain_join(inputs["left"], inputs["right"], _spec(settings))

    def remember(self, settings: Settings, decision: Decision) -> Mapping[str, str]:
        """Today's hot keys, if a file for them is named."""
        path = settings.hot_keys_file
        return {path: remembered_text(settings.pairs, decision.evidence["hot_keys"])} if path else {}


def _question(settings: Settings) -> JoinQuestion:
    return JoinQuestion(
        settings.pairs,
        settings.how,
        hot_share=settings.hot_share,
        max_broadcast_bytes=parse_bytes(settings.max_broadcast_bytes),
        replication_budget=settings.replication_budget,
        salts=settings.salts if isinstance(settings.salts, int) else None,
        drop=read_keys(settings.drop_keys),
        select=settings.select,
    )


def _spec(settings: Settings) -> JoinSpec:
    return JoinSpec(settings.pairs, settings.how, settings.select, read_keys(settings.drop_keys))


def _remembered(settings: Settings) -> tuple[tuple[str, ...], ...] | None:
    path = settings.hot_keys_file
    return remembered_keys(path, on=settings.pairs) if path else None


def _treatment(evidence: Mapping[str, Any]) -> Treatment:
    """The way of each key, as the planner has decided it."""
    by_way: dict[str, dict[int, int]] = {}
    for key in evidence["hot_keys"]:
        by_way.setdefault(key.get("way", ""), {})[key["hash"]] = key.get("salts", 1)
    return Treatment(
        broadcast=evidence.get("broadcast"),
        broadcast_right=frozenset(by_way.get("broadcast_right", ())),
        broadcast_left=frozenset(by_way.get("broadcast_left", ())),
        split_left=by_way.get("split_left", {}),
        split_right=by_way.get("split_right", {}),
        nulls_apart=evidence.get("nulls_apart", False),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; the exit code is returned."""
    return run_job(SkewJoin(), argv)


if __name__ == "__main__":
    raise SystemExit(main())
