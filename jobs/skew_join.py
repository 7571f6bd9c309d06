"""A join that stays level under skew: hot keys are found and treated apart; its rows are the plain join's."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from a clone

from pydantic import AfterValidator, Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from common.core.errors import SuiteError, UsageError
from common.core.units import parse_bytes
from common.runs import Columns, Decision, Facts, Inputs, Job, JobSettings, run_job
from common.settings.job import Size
from common.settings.key_files import read_keys, remembered_keys, remembered_text
from common.settings.salts import Salts, salt_count
from common.transforms.hot_keys import asked_key_counts, hot_key_counts, hot_keys_by_sketch
from common.transforms.join_sides import How, JoinSpec, Sides, check_hashable, joined_sides
from common.transforms.key_sample import keyed_sample
from common.transforms.skew_join import Treatment, plain_join, skew_join
from common.tuning.hot_key_search import NO_SCAN, Search, plan_search
from common.tuning.skew import Strategy, plan_join
from common.tuning.skew_facts import JoinQuestion

_LOG = logging.getLogger("saltpan.run")


def _auto_or_file(value: str) -> str:
    if value == "auto" or (value.startswith("@") and len(value) > 1):
        return value
    hint = f"did you mean @{value}" if value.strip("@") else None
    raise UsageError("setting", "--hot-keys", expected="auto, or @FILE", got=value, hint=hint)


class Settings(JobSettings):
    """The flags of skew-join."""

    on: Annotated[Columns, Field(min_length=1)]
    """Key columns: K where both sides call it so, K=K2 where the right side calls it K2."""
    how: How = "inner"
    """Which rows are kept; semi and anti give left rows only."""
    strategy: Strategy = "auto"
    """How; auto chooses and says why."""
    salts: Salts = "auto"
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
    hot_keys: Annotated[str, AfterValidator(_auto_or_file)] = "auto"
    """@FILE: start from the hot keys that an earlier run has kept there, and keep today's."""
    verify_one_in: int = Field(default=1, ge=1)
    """--verify compares the rows of one key in so many, and of a hot key of each way; by default all."""

    def problems(self) -> Iterable[SuiteError]:
        """Names are there on both sides of =; a share of a proof needs the proof."""
        for name in self.on:
            if "" in (part.strip() for part in name.split("=", 1)):
                yield UsageError("flag", "--on", expected="K, or K=K2", got=name)
        if self.verify_one_in > 1 and not self.verify:
            got = f"{self.verify_one_in} without it"
            yield UsageError("flag", "--verify-one-in", expected="--verify beside it", got=got)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The key columns of both sides."""
        split = (name.partition("=") for name in self.on)
        return tuple((left.strip(), right.strip() or left.strip()) for left, _, right in split)

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
        search, drop = _search(facts, settings), read_keys(settings.drop_keys)
        sides = joined_sides(inputs["left"], inputs["right"], JoinSpec(settings.pairs, drop=drop))
        frames: dict[str, DataFrame] = {}
        if search.how != "none" and _has_hashes(sides, settings.strategy):
            uncounted = [name for name in self.inputs if facts.inputs[name].row_count is None]
            frames = {f"{name}_rows": inputs[name].agg(F.count(F.lit(1)).alias("rows")) for name in uncounted}
            if search.how == "count":
                frames["hot_keys"] = hot_key_counts(sides, search.keys)
            else:
                frames["scanned"] = hot_keys_by_sketch(sides, share=settings.hot_share)
        if drop:
            whole = joined_sides(inputs["left"], inputs["right"], JoinSpec(settings.pairs))
            frames["dropped"] = asked_key_counts(whole, drop)
        return frames

    def plan(self, facts: Facts, settings: Settings) -> Decision:
        """A broadcast where one side is small; hot keys apart where that saves work or waiting."""
        decision = plan_join(settings.strategy, _question(settings), facts)
        for line in decision.evidence.get("hot_keys_in_words", ()):
            _LOG.info("%s", line)
        looked = facts.probed.keys() & {"hot_keys", "scanned"}
        source = _search(facts, settings).source if looked else ""
        if not source:
            return decision
        _LOG.info("hot keys from %s", source)
        return replace(decision, evidence={**decision.evidence, "hot_keys_from": source})

    def build(self, inputs: Inputs, settings: Settings, decision: Decision) -> DataFrame:
        """The join with hot keys on their ways."""
        left, right, spec = inputs["left"], inputs["right"], _spec(settings)
        for cast in joined_sides(left, right, spec).casts:
            _LOG.info("key cast: %s", cast)
        return skew_join(left, right, spec, _treatment(decision.evidence))

    def plain(self, inputs: Inputs, settings: Settings) -> DataFrame:
        """The join as Spark does it."""
        return plain_join(inputs["left"], inputs["right"], _spec(settings))

    def proof(self, inputs: Inputs, settings: Settings, decision: Decision) -> Inputs:
        """All rows, or those of some keys: of each way the hot key with fewest rows, and one in so many."""
        if settings.verify_one_in == 1:
            return inputs
        by_way: dict[str, int] = {}
        for key in decision.evidence["hot_keys"]:  # those with most rows first
            by_way[key.get("way", "")] = key["hash"]
        hot = f"{len(by_way)} hot key{'' if len(by_way) == 1 else 's'}"
        _LOG.info("to verify: one key in %d, and %s", settings.verify_one_in, hot)
        sides = keyed_sample(
            inputs["left"],
            inputs["right"],
            _spec(settings),
            one_in=settings.verify_one_in,
            always=by_way.values(),
        )
        return dict(zip(self.inputs, sides, strict=True))

    def remember(self, settings: Settings, decision: Decision) -> Mapping[str, str]:
        """Today's hot keys, if a file for them is named and they were looked for."""
        path, source = settings.hot_keys_file, decision.evidence.get("hot_keys_from", "")
        if path is None or not source:
            return {}
        kept = remembered_keys(path, on=settings.pairs) if source.endswith(NO_SCAN) else None
        skipped = kept.scans_skipped + 1 if kept else 0
        share = kept.hot_share if kept else settings.hot_share
        keys = decision.evidence["hot_keys"]
        return {path: remembered_text(settings.pairs, keys, hot_share=share, scans_skipped=skipped)}


def _has_hashes(sides: Sides, strategy: Strategy) -> bool:
    """True when keys can be taken apart; they must be where that is asked for."""
    if strategy in ("isolate", "salt"):
        check_hashable(sides, strategy)
    return sides.is_hashable


def _search(facts: Facts, settings: Settings) -> Search:
    path = settings.hot_keys_file
    kept = remembered_keys(path, on=settings.pairs) if path else None
    return plan_search(settings.strategy, _question(settings), facts, remembered=kept)


def _question(settings: Settings) -> JoinQuestion:
    return JoinQuestion(
        settings.pairs,
        settings.how,
        hot_share=settings.hot_share,
        max_broadcast_bytes=parse_bytes(settings.max_broadcast_bytes),
        replication_budget=settings.replication_budget,
        salts=salt_count(settings.salts),
        drop=read_keys(settings.drop_keys),
        select=settings.select,
    )


def _spec(settings: Settings) -> JoinSpec:
    return JoinSpec(settings.pairs, settings.how, settings.select, read_keys(settings.drop_keys))


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
