"""A session and what is known about it, the same for every kind of Spark."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

from pyspark.sql import SparkSession

from common import __version__
from common.engine.applied import NotApplied
from common.settings.engines import EngineKind, capabilities

EngineName = Literal["local", "submit", "existing", "connect"]


@dataclass(frozen=True)
class Engine(ABC):
    """A session and what is known about it.

    Attributes:
        kind: "classic" or "connect": what its Python objects are.
        spark: The session.
        name: "local" (ours), "submit" (spark-submit's), "existing" (some caller's), "connect" (a server's).
        not_applied: Settings that were asked for and could not be applied.
    """

    kind: ClassVar[EngineKind]

    spark: SparkSession
    name: EngineName
    not_applied: tuple[NotApplied, ...] = ()

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """What strategies may need of it."""
        return capabilities(self.kind, spark_version=self.spark.version)

    @property
    def configuration(self) -> dict[str, str]:
        """The settings in force, as Spark reports them."""
        return dict(sorted(self.spark.conf.getAll.items()))

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of all that takes part in an answer."""
        return {
            "suite": __version__,
            "engine": f"spark ({self.name})",
            "spark": self.spark.version,
            "python": platform.python_version(),
        }

    @property
    @abstractmethod
    def application_id(self) -> str | None:
        """Spark's id of the application."""

    @property
    @abstractmethod
    def ui_address(self) -> str | None:
        """Address of Spark's own pages, if they are on and known."""

    @property
    @abstractmethod
    def core_count(self) -> int:
        """Task slots, as far as Spark knows them now; 0 when it does not tell."""

    @abstractmethod
    def describe(self, text: str) -> None:
        """Name the work that follows in Spark's own pages."""

    @abstractmethod
    def cancel(self) -> None:
        """Ask Spark to stop all that runs; harmless when it is gone."""


def is_connect(spark: SparkSession) -> bool:
    """True for a session of Spark Connect, False for a classic one."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _nothing() -> None:
    """Nothing to do."""


def _no_look(_spark: SparkSession) -> None:
    """Nothing to look at."""


@dataclass(frozen=True)
class Addition:
    """What a session of our own gets besides its profile: a fast start, an accelerator.

    Attributes:
        settings: Spark settings; they win over the profile's layers and lose to --conf.
        java_options: Options of the JVM, before those of the profile.
        opened: Called with the session once it runs.
        ended: Called once its JVM was told to end, however the run went.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    java_options: tuple[str, ...] = ()
    opened: Callable[[SparkSession], None] = _no_look
    ended: Callable[[], None] = _nothing
