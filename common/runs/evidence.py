"""What a job plans by: the facts of its inputs and of the engine, gathered once in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pyspark.sql import DataFrame

from common.engine.facts import sample_keys, sampled_facts, static_facts
from common.engine.handle import Engine
from common.engine.listing import Listing
from common.runs.acceleration import has_comet
from common.runs.job import Inputs
from common.tuning.facts import Facts, InputFacts, KeySample

# Reading the first rows of these is a small action.
_SAMPLED_FORMATS = frozenset({"parquet", "orc", "table"})


def gather_facts(
    wanted: Mapping[str, Sequence[str]], engine: Engine, listings: Mapping[str, Listing], frames: Inputs
) -> Facts:
    """The facts that a planner is given.

    Args:
        wanted: Input name to the columns whose spread is to be sampled; `Job.sample` says so.
        engine: The session's.
        listings: What was found at each input's paths.
        frames: The inputs, for a sample where their files cannot be looked at from here.
    """
    facts = {
        name: replace(static_facts(listing), sample=_sampled(listing, frames[name], wanted.get(name, ())))
        for name, listing in listings.items()
    }
    return Facts(
        facts,
        engine.name,
        engine.capabilities,
        engine.spark.version,
        engine.core_count,
        "comet" if has_comet(engine) else "none",
    )


def _sampled(listing: Listing, df: DataFrame, columns: Sequence[str]) -> KeySample | None:
    """How the columns spread: from the files where they are here, else from the engine's first rows."""
    if not columns:
        return None
    if listing.is_listed and listing.is_local:
        return sample_keys(listing, columns)
    return sampled_facts(df, columns) if listing.format in _SAMPLED_FORMATS else None


def recorded(known: InputFacts, listing: Listing) -> dict[str, Any]:
    """An input's facts for the run record, without what would fill pages."""
    facts = asdict(known)
    del facts["column_bytes"]
    if facts["sample"] is not None:
        del facts["sample"]["group_sizes"]
    return {**facts, "skipped": list(listing.skipped), "unchecked": list(listing.unchecked)}
