"""Settings that are asked of a session: what it takes is set, what not is reported, all is given back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from common.settings.profiles import BASE, Setting


@dataclass(frozen=True)
class NotApplied:
    """A setting that was asked for and is not in force."""

    key: str
    asked: str
    effective: str | None
    why: str


@contextmanager
def applied(
    spark: SparkSession, settings: Iterable[Setting], *, owned: Collection[str] = ()
) -> Iterator[tuple[NotApplied, ...]]:
    """Set what a session takes that is not ours; afterwards every value is back to what its owner had.

    Args:
        spark: The session, classic or Connect.
        settings: What is asked for.
        owned: Keys that the session's owner chose: the base layer does not overrule these.
    """
    before: dict[str, str | None] = {}
    try:
        yield apply_settings(spark, settings, owned=owned, before=before)
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def apply_settings(
    spark: SparkSession,
    settings: Iterable[Setting],
    *,
    owned: Collection[str] = (),
    before: dict[str, str | None] | None = None,
) -> tuple[NotApplied, ...]:
    """Set what a running session takes and return what it does not.

    Args:
        spark: The session, classic or Connect.
        settings: What is asked for.
        owned: Keys that the session's owner chose: the base layer does not overrule these.
        before: Filled with the values that were replaced, None for keys that had none.
    """
    in_force = dict(spark.conf.getAll)
    not_applied = []
    for setting in settings:
        key, effective = setting.key, in_force.get(setting.key)
        if effective == setting.value:
            continue
        if setting.layer == BASE and key in owned:
            why = "the session was started with its own value"
        elif not spark.conf.isModifiable(key):
            why = "only a new session can take it"
        else:
            if before is not None:
                before[key] = effective
            spark.conf.set(key, setting.value)
            continue
        not_applied.append(NotApplied(key, setting.value, effective, why))
    return tuple(not_applied)


def differing(spark: SparkSession, settings: Iterable[Setting]) -> tuple[NotApplied, ...]:
    """Settings of a session of our own that Spark reports otherwise than asked."""
    in_force = spark.conf.getAll
    return tuple(
        NotApplied(setting.key, setting.value, effective, "Spark reports another value")
        for setting in settings
        if (effective := in_force.get(setting.key)) is not None and effective != setting.value
    )
