"""Facts enriched from a dimension: by a join or a broadcast variable, with exact counters and rejects."""

from __future__ import annotations

import datetime as dt
import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from a clone

from pydantic import AfterValidator, Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from common.core.errors import StrategyError, SuiteError, UsageError
from common.core.units import parse_bytes
from common.engine.counters import Counters
from common.runs import (
    Columns,
    Counted,
    Decision,
    Examples,
    Facts,
    Inputs,
    Job,
    JobSettings,
    ReadInputs,
    Rejects,
    Shared,
    run_job,
)
from common.settings.job import Size
from common.transforms import lookup
from common.transforms.counters import aggregates
from common.transforms.lookup_dimension import dimension_summary, prepared_dimension, validity_summary
from common.transforms.lookup_hits import Hits, found_hits, joined_hits, variable_rows
from common.transforms.lookup_sides import LookupSides, lookup_sides
from common.transforms.lookup_spec import Duplicates, LookupSpec, Missing, Validity
from common.tuning import lookup_faults
from common.tuning.lookup import LookupQuestion, Mode, plan_lookup
from common.tuning.rejects import check_rejects

_LOG = logging.getLogger("saltpan.run")
_DIMENSION = "dimension"
_LOOK = "look at the keys with --missing fail"


def _check(pattern: str, expected: str) -> AfterValidator:
    """Text of a form that is said in words."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise UsageError("setting", value, expected=expected, got=repr(value))
        return value

    return AfterValidator(check)


def _check_day(value: str) -> str:
    try:
        dt.date.fromisoformat(value)
    except ValueError:
        raise UsageError("setting", value, expected="a day such as 2013-06-01", got=repr(value)) from None
    return value


class Settings(JobSettings):
    """The flags of lookup."""

    on: Annotated[Columns, Field(min_length=1)]
    """Key columns: K where both sides call it so, K=K2 where the dimension calls it K2."""
    take: Annotated[Columns, Field(min_length=1)]
    """Columns of the dimension that the facts get: a, or a=b to call it b."""
    missing: Annotated[
        str, _check("null|fail|quarantine|default:.*", "null, fail, quarantine or default:VALUE")
    ] = "null"
    """A fact without a match: null, default:VALUE to take, fail, or quarantine: it goes to OUTPUT.rejects."""
    duplicates: Annotated[
        str, _check("fail|expand|(first|last):.+", "fail, expand, first:COLUMNS or last:COLUMNS")
    ] = "fail"
    """Several rows of a key: fail, first:COLUMNS or last:COLUMNS in that order, expand: a row for each."""
    strategy: Mode = "auto"
    """How; auto chooses and says why."""
    as_of: Annotated[str, AfterValidator(_check_day)] | None = None
    """Day on which a version of the dimension must be valid; with --valid-from and --valid-to."""
    valid_from: str | None = None
    """Column with the first day or instant of a version; NULL: since ever."""
    valid_to: str | None = None
    """Column with the first day or instant after it; NULL: for ever."""
    gaps: Literal["fail", "allow"] = "fail"
    """Versions of a key with days between them that have none: fail, or allow."""
    max_broadcast_bytes: Size = "256m"
    """The most that may be broadcast, as it is in memory; of a variable in all workers of an executor."""

    def problems(self) -> Iterable[SuiteError]:
        """Flags that belong together."""
        days = {"--as-of": self.as_of, "--valid-from": self.valid_from, "--valid-to": self.valid_to}
        absent = [flag for flag, value in days.items() if value is None]
        if absent and len(absent) < len(days):
            got = f"no {' and no '.join(absent)}"
            yield UsageError("flags", ", ".join(days), expected="all three or none", got=got)
        if self.gaps == "allow" and len(absent) == len(days):
            yield UsageError("flag", "--gaps", expected="--as-of beside it", got="none")
        for name in ("on", "take"):
            yield from _empty_names(f"--{name}", getattr(self, name))
        if not all(self.spec.order):
            yield UsageError("flag", "--duplicates", expected="a column's name", got=repr(self.duplicates))

    @property
    def rejecting(self) -> str | None:
        """With quarantine, or for bad rows."""
        return "--missing quarantine" if self.missing == "quarantine" else super().rejecting

    @property
    def spec(self) -> LookupSpec:
        """What is asked."""
        missing, _, default = self.missing.partition(":")
        duplicates, _, order = self.duplicates.partition(":")
        return LookupSpec(
            tuple((left, right or left) for left, right in _pairs(self.on)),
            _pairs(self.take),
            cast("Missing", missing),
            default if missing == "default" else None,
            cast("Duplicates", duplicates),
            tuple(name.strip() for name in order.split(",")) if order else (),
            self._validity,
        )

    @property
    def _validity(self) -> Validity | None:
        if self.as_of is None or self.valid_from is None or self.valid_to is None:
            return None
        return Validity(dt.date.fromisoformat(self.as_of), self.valid_from, self.valid_to)


class Lookup(Job[Settings]):
    """Facts enriched from a dimension: by a join or a broadcast variable, with exact counters and rejects."""

    settings = Settings
    inputs = ("facts", _DIMENSION)

    def probe(
        self,
        inputs: Inputs,
        facts: Facts,  # noqa: ARG002  the protocol's
        settings: Settings,
    ) -> Mapping[str, DataFrame]:
        """The dimension counted, its versions checked, the default tried."""
        spec = settings.spec
        sides = lookup_sides(inputs["facts"], inputs[_DIMENSION], spec)
        hashable = F.lit(sides.is_hashable).alias("hashable")
        frames = {_DIMENSION: dimension_summary(sides, spec).select("*", hashable)}
        if spec.validity is not None:
            frames["validity"] = validity_summary(sides, spec)
        if spec.missing == "default":
            frames["default"] = lookup.unfit_defaults(sides, spec)
        return frames

    def plan(self, facts: Facts, settings: Settings) -> Decision:
        """A join, unless a variable is asked for; first what is wrong with the dimension."""
        spec = settings.spec
        on = [right for _, right in spec.on]
        (counted,) = facts.probed[_DIMENSION]
        for row in facts.probed.get("default", ()):
            lookup_faults.check_defaults(row, default=spec.default or "")
        for row in facts.probed.get("validity", ()):
            lookup_faults.check_validity(row, on=on, allows_gaps=settings.gaps == "allow")
            absent = lookup_faults.absent_in_words(row, day=settings.as_of)
            if absent:
                _LOG.warning("%s", absent)
        if spec.duplicates == "fail":
            lookup_faults.check_duplicates(counted, on=on)
        limit = parse_bytes(settings.max_broadcast_bytes)
        question = LookupQuestion(spec.on, limit, has_hashable_keys=counted["hashable"])
        return plan_lookup(settings.strategy, question, facts)

    def share(self, inputs: Inputs, settings: Settings, decision: Decision) -> Mapping[str, Shared]:
        """The dimension, where it goes to Python workers."""
        if decision.choice != "variable":
            return {}
        sides, rows = _prepared(inputs, settings, decision)
        rows = variable_rows(sides, rows)
        return {_DIMENSION: Shared(rows, parse_bytes(settings.max_broadcast_bytes))}

    def build(self, inputs: Inputs, settings: Settings, decision: Decision) -> Counted:
        """The facts with what was found for them."""
        spec, hits = settings.spec, _hits(inputs, settings, decision)
        for cast_key in hits.sides.casts:
            _LOG.info("key cast: %s", cast_key)
        declared = lookup.counters(hits)
        counters = Counters(*declared)
        return Counted(
            lookup.answer(hits, spec, attach=counters.attach),
            counters,
            known={"duplicates": decision.evidence["duplicates"]},
            counts=hits.rows.agg(*aggregates(hits.rows, declared)),
            examples=lookup.missing_keys(hits),
            rejects=Rejects(lookup.rejected(hits), "missing"),
        )

    def plain(self, inputs: Inputs, settings: Settings) -> DataFrame:
        """The lookup as Spark's left join does it."""
        return lookup.plain_lookup(inputs["facts"], inputs[_DIMENSION], settings.spec)

    def judge(self, counters: Mapping[str, int], examples: Examples, settings: Settings) -> None:
        """No fact without a match with `fail`, and no more rejects than are allowed."""
        if settings.missing == "fail" and counters["missing"]:
            on = [left for left, _ in settings.spec.on]
            lookup_faults.check_missing(counters["missing"], examples(), on=on)
        if settings.max_rejects is not None and self.has_rejects(settings):
            check_rejects(counters["missing"], counters["facts"], limit=settings.max_rejects, hint=_LOOK)

    def has_rejects(self, settings: Settings) -> bool:
        """With quarantine."""
        return settings.missing == "quarantine"


def _pairs(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    split = (name.partition("=") for name in names)
    return tuple((left.strip(), right.strip()) for left, _, right in split)


def _empty_names(flag: str, names: Sequence[str]) -> Iterable[SuiteError]:
    for name in names:
        left, equals, right = name.partition("=")
        if not left.strip() or (equals and not right.strip()):
            yield UsageError("flag", flag, expected="NAME, or NAME=NAME", got=repr(name))


def _prepared(inputs: Inputs, settings: Settings, decision: Decision) -> tuple[LookupSides, DataFrame]:
    """Both sides, and the dimension as facts meet it."""
    spec = settings.spec
    sides = lookup_sides(inputs["facts"], inputs[_DIMENSION], spec)
    return sides, prepared_dimension(sides, spec, has_duplicates=decision.evidence["duplicates"] > 0)


def _hits(inputs: Inputs, settings: Settings, decision: Decision) -> Hits:
    sides, rows = _prepared(inputs, settings, decision)
    if decision.choice == "join":
        return joined_hits(sides, rows, broadcast=decision.evidence["broadcast"])
    if not isinstance(inputs, ReadInputs) or _DIMENSION not in inputs.shared:
        expected, got = "a run that shares the dimension", "none"
        raise StrategyError("strategy", "variable", expected=expected, got=got, hint="use join")
    return found_hits(sides, rows, inputs.shared[_DIMENSION].variable)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; the exit code is returned."""
    return run_job(Lookup(), argv)


if __name__ == "__main__":
    raise SystemExit(main())
