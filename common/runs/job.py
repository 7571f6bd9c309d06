"""A job is a declaration: settings, inputs, plan, build, and the plain form that proves it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from pyspark.sql import DataFrame, Observation

from common.settings.job import JobSettings
from common.tuning.decision import Decision
from common.tuning.facts import Facts

S = TypeVar("S", bound=JobSettings)

Inputs = Mapping[str, DataFrame]


@dataclass(frozen=True)
class Display:
    """How people want to see the rows.

    Attributes:
        order: Columns that printed rows, and the rows of each written file, are sorted by.
        measures: Numeric columns that are compared: printed with thousands apart and a bar.
        descending: Those of `order` whose largest value comes first.
    """

    order: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    descending: tuple[str, ...] = ()


@dataclass(frozen=True)
class Counted:
    """An answer whose making counts something.

    Attributes:
        rows: The answer.
        observation: Attached to a part of it by `DataFrame.observe`; its numbers become the run's counters.
    """

    rows: DataFrame
    observation: Observation


class Job(Generic[S]):
    """A batch job; everything around it (flags, explain, verify, publish, record) comes from `run_job`.

    A job with one way to its answer declares `settings` and `plain`. One with several adds `plan` and
    `build`. All methods are pure: no action, no session, no IO.

    Attributes:
        settings: The model of the job's own flags.
        inputs: Names of the inputs; each becomes --NAME, --NAME-format, --NAME-schema, --NAME-option.
    """

    settings: type[S]
    inputs: ClassVar[tuple[str, ...]] = ("input",)

    @property
    def name(self) -> str:
        """The job's name: the class's, in kebab case.

        >>> class LongFlights(Job[JobSettings]):
        ...     "Flights of many miles."
        >>> LongFlights().name
        'long-flights'
        """
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(self).__name__).lower()

    @property
    def summary(self) -> str:
        """What the job does: the class's docstring."""
        return " ".join((type(self).__doc__ or "").split())

    def plain(self, inputs: Inputs, settings: S) -> DataFrame:
        """The answer in the plainest right form; what --verify compares with."""
        raise NotImplementedError(f"{type(self).__name__} needs a method plain(inputs, settings)")

    def plan(self, facts: Facts, settings: S) -> Decision:
        """Choose a strategy. The default has one."""
        return Decision("plain", "the job has one strategy")

    def build(self, inputs: Inputs, settings: S, decision: Decision) -> DataFrame | Counted:
        """The answer by the strategy that was decided. The default is the plain form."""
        return self.plain(inputs, settings)

    def probe(self, inputs: Inputs, facts: Facts, settings: S) -> Mapping[str, DataFrame]:
        """Small frames, of at most 10,000 rows each, whose rows `plan` wants as `facts.probed`.

        Each costs an action before anything else runs, so a frame is asked for only where the facts so far
        leave something open.
        """
        return {}

    def remember(self, settings: S, decision: Decision) -> Mapping[str, str]:
        """Local files to write after a run that went well, path to text: what the next run starts from."""
        return {}

    def sample(self, settings: S) -> Mapping[str, Sequence[str]]:
        """Input name to the columns whose spread over rows `plan` wants to know, where it is cheap."""
        return {}

    def approximate(self, settings: S) -> Sequence[str]:
        """Output columns that come from float aggregation, whose last digits depend on partitioning."""
        return ()

    def display(self, settings: S, columns: Sequence[str]) -> Display:
        """How the rows are best shown; `columns` are those of the output."""
        return Display()
