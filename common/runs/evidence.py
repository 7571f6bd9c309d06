"""What a job plans by: the facts of its inputs and of the engine, gathered once in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pyspark.sql import DataFrame

from common.core.errors import JobError
from common.engine.column_widths import column_widths
from common.engine.facts import sample_keys, sampled_facts, static_facts
from common.engine.handle import Engine
from common.engine.listing import Listing
from common.runs.acceleration import has_comet
from common.runs.job import Inputs, Job
from common.runs.job_calls import calling, frame_of
from common.settings.job import JobSettings
from common.tuning.facts import Facts, InputFacts, KeySample

PROBED_ROWS = 10_000
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
        name: replace(
            static_facts(listing),
            sample=_sampled(name, listing, frames, wanted.get(name, ())),
            column_widths=column_widths(listing) if name in wanted else {},
        )
        for name, listing in listings.items()
    }
    return Facts(
        facts,
        engine.name,
        engine.capabilities,
        engine.spark.version,
        engine.core_count,
        "comet" if has_comet(engine) else "none",
        workers_per_executor=_workers(engine),
    )


def _workers(engine: Engine) -> int:
    """Python workers of one executor; 0 where only a server knows."""
    if engine.kind != "classic":
        return 0
    from common.engine.broadcast_tables import workers_per_executor

    return workers_per_executor(engine.spark, core_count=engine.core_count)


def probed(job: Job[Any], facts: Facts, frames: Inputs, settings: JobSettings) -> Facts:
    """The facts with the rows of the small frames that the job asks for.

    Raises:
        JobError: a frame holds more than 10,000 rows, or is none.
    """
    while True:
        with calling(job, "probe"):
            frames_asked = job.probe(frames, facts, settings)
        wanted = {name: frame for name, frame in frames_asked.items() if name not in facts.probed}
        if not wanted:
            return facts
        rows = {name: _rows(job, frame) for name, frame in wanted.items()}
        facts = replace(facts, probed={**facts.probed, **rows})


def _rows(job: Job[Any], frame: DataFrame) -> tuple[dict[str, Any], ...]:
    rows = frame_of(job, "probe", frame).limit(PROBED_ROWS + 1).collect()
    if len(rows) > PROBED_ROWS:
        expected, got = f"probe to return frames of at most {PROBED_ROWS:,} rows", "more"
        raise JobError("job", job.name, expected=expected, got=got)
    return tuple(row.asDict() for row in rows)


def _sampled(name: str, listing: Listing, frames: Inputs, columns: Sequence[str]) -> KeySample | None:
    """How the columns spread: from the files where they are here, else from the engine's first rows."""
    if not columns:
        return None
    if listing.is_listed and listing.is_local:
        return sample_keys(listing, columns)
    return sampled_facts(frames[name], columns) if listing.format in _SAMPLED_FORMATS else None


def recorded(known: InputFacts, listing: Listing) -> dict[str, Any]:
    """An input's facts for the run record, without what would fill pages."""
    facts = asdict(known)
    del facts["column_bytes"], facts["packed_files"]
    if facts["sample"] is not None:
        del facts["sample"]["group_sizes"]
    return {
        **facts,
        "skipped": list(listing.skipped),
        "passed_over": list(listing.passed_over),
        "unchecked": list(listing.unchecked),
    }
