"""A job is a declaration: settings, inputs, plan, build, and the plain form that proves it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from pyspark.sql import DataFrame, Observation

from common.settings.job import JobSettings
from common.transforms.counters import Counting
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
        observation: Attached to a part of it; its numbers become the run's counters. `Counters` (or those of
            Python functions) are put right where tasks ran again; an `Observation` is taken as it is.
        known: Numbers that stand among the counters, and that the plan knew already.
        counts: One row with the observed numbers, for an answer that is printed, of which Spark may compute
            only the first rows. None: whatever is asked of the answer computes all that is observed.
        examples: At most some rows that say more of what `Job.judge` finds wrong; run only when it asks.
        rejects: Rows that could not be used, to be published beside the output.
    """

    rows: DataFrame
    observation: Observation | Counting
    known: Mapping[str, int] = field(default_factory=dict)
    counts: DataFrame | None = None
    examples: DataFrame | None = None
    rejects: Rejects | None = None


@dataclass(frozen=True)
class Rejects:
    """Rows that could not be used.

    Attributes:
        rows: They themselves, with a reason.
        counter: The name of the observed number that says how many they are.
    """

    rows: DataFrame
    counter: str


@dataclass(frozen=True)
class Shared:
    """A small frame that all workers get whole, in a broadcast variable.

    Attributes:
        rows: Its first column is the hash that it is searched by: bigint without NULL.
        max_bytes: What its decoded copies may take in one executor.
    """

    rows: DataFrame
    max_bytes: int


Examples = Callable[[], Sequence[Mapping[str, Any]]]


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
        leave something open. Asked again, with what was found, until it names nothing new.
        """
        return {}

    def share(self, inputs: Inputs, settings: S, decision: Decision) -> Mapping[str, Shared]:
        """Frames to collect and broadcast before `build`, which finds them by name in `ReadInputs.shared`.

        They are destroyed when the run has ended, however it has.
        """
        return {}

    def judge(self, counters: Mapping[str, int], examples: Examples, settings: S) -> None:
        """Refuse the answer by its counters, before any of it is published or printed.

        Args:
            counters: What was observed.
            examples: The rows of `Counted.examples`; costs an action.
            settings: The job's.

        Raises:
            SuiteError: the answer is not to be published.
        """

    def has_rejects(self, settings: S) -> bool:
        """True when rows that cannot be used go to OUTPUT.rejects."""
        return False

    def proof(self, inputs: Inputs, settings: S, decision: Decision) -> Inputs:
        """What --verify compares both forms on: all rows, or others of the same inputs, such as a sample."""
        return inputs

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
