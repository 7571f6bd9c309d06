"""The registry of Spark's settings: what is known of each, and what is wrong with a value (keys.toml)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from common.core.errors import ParameterError
from common.core.masking import is_secret_key
from common.settings.findings import Finding, Severity, finding
from common.settings.keys import Family, Key, Kind
from common.settings.spellings import near_spellings, with_a_part_more


@dataclass(frozen=True)
class Registry:
    """The settings by name, and the families of those that are not checked one by one."""

    keys: Mapping[str, Key]
    families: Mapping[str, Family]

    def find(self, key: str) -> Key | None:
        """What is known of a setting, by its own name or by one with a star."""
        exact = self.keys.get(key)
        if exact is not None:
            return exact
        for pattern, starred in self._starred:
            if pattern.fullmatch(key):
                return replace(starred, name=key)
        return None

    @cached_property
    def _starred(self) -> list[tuple[re.Pattern[str], Key]]:
        """Keys with a star in their names, which stands for one word."""
        starred = [key for key in self.keys.values() if "*" in key.name]
        return [(re.compile(re.escape(key.name).replace(r"\*", r"\w+")), key) for key in starred]

    def family(self, key: str) -> Family | None:
        """The family of a setting, known by itself or not."""
        return next((family for prefix, family in self.families.items() if key.startswith(prefix)), None)

    def kind(self, key: str) -> Kind | None:
        """When a setting must be there; None when it is not known."""
        known = self.find(key) or self.family(key)
        return known.kind if known else None

    def check(self, key: str, value: str, *, origin: str = "") -> Finding | None:
        """The worst that can be said of one setting by itself, or None.

        A name that is not known passes, unless it is nearly one that is.

        >>> load_registry().check("spark.executor.memory", "4gg").severity
        'error'
        """
        known = self.find(key)
        if known is None:
            return self._unknown(key, value, origin)
        return (
            _status(known, value, origin)
            or _value(known, value, origin)
            or _deprecation(known, value, origin)
            or _advice(known, value, origin)
        )

    def _unknown(self, key: str, value: str, origin: str) -> Finding | None:
        family = self.family(key)
        if family is not None:
            gone = family.status == "dead"
            return _ignored(key, value, origin, family.replaced_by, ()) if gone else None
        if not key.startswith("spark.") or key in known_names():
            return None
        known = [*self.keys, *known_names()]
        near = near_spellings(key, known)
        # One part left out is a guess, not a certainty: people have settings of their own.
        meant = near or with_a_part_more(key, known)
        if not meant:
            return None
        # The value of a secret whose key is misspelt is no less secret.
        shown = "*****" if any(is_secret_key(name) for name in meant) else value
        hint = f"did you mean {' or '.join(meant)}"
        sentence = "a key that Spark knows" if near else "Spark knows no such key"
        severity: Severity = "error" if near else "warning"
        return finding(key, shown, origin, severity=severity, sentence=sentence, hint=hint)


def too_late(key: str, value: str, *, origin: str) -> Finding | None:
    """The finding about a setting that is asked for when Spark runs already, as under spark-submit."""
    if load_registry().kind(key) not in ("deploy", "static"):
        return None
    sentence = "set too late: Spark runs already, and only a new session can take it"
    shown = finding(key, value, origin, severity="warning", sentence=sentence)
    hint = f"give it to spark-submit itself: --conf {key}={shown.value}"
    return finding(key, value, origin, severity="warning", sentence=sentence, hint=hint)


@cache
def load_registry() -> Registry:
    """The registry in keys.toml."""
    tables = _toml("keys.toml")
    keys = {name: Key.from_table(name, table) for name, table in tables["keys"].items()}
    families = {prefix: Family(prefix, **table) for prefix, table in tables["families"].items()}
    return Registry(keys, families)


@cache
def known_names() -> frozenset[str]:
    """Names of settings that Spark has beyond those of the registry; read when an unknown one turns up."""
    return frozenset(name for names in _toml("spark_names.toml").values() for name in names)


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _ignored(key: str, value: str, origin: str, by: str, guidelines: tuple[str, ...]) -> Finding:
    return finding(
        key,
        value,
        origin,
        severity="warning",
        sentence="Spark 4 ignores it",
        guidelines=guidelines,
        hint=_instead(by),
    )


def _instead(by: str) -> str:
    return by.removeprefix("nothing: ") if by.startswith("nothing") else f"instead: {by}"


def _status(key: Key, value: str, origin: str) -> Finding | None:
    if key.status == "dead":
        return _ignored(key.name, value, origin, key.replaced_by, key.guidelines)
    if key.status == "fatal" and value.strip() != key.default:
        sentence = f"{key.default!r}, its old default, or nothing: Spark 4 refuses any other value"
        hint = _instead(key.replaced_by)
        return finding(key.name, value, origin, severity="error", sentence=sentence, hint=hint)
    return None


def _value(key: Key, value: str, origin: str) -> Finding | None:
    if "${" in value:  # Spark puts another setting's value here
        return None
    try:
        key.read(value)
    except ParameterError as problem:
        return finding(
            key.name,
            value,
            origin,
            severity="error",
            sentence=problem.expected,
            guidelines=key.guidelines,
            hint=problem.hint or _replacement(key),
        )
    return None


def _replacement(key: Key) -> str | None:
    return _instead(key.replaced_by) if key.replaced_by else None


def _deprecation(key: Key, value: str, origin: str) -> Finding | None:
    if key.status == "deprecated":
        sentence, hint = "deprecated: Spark 4 still reads it", _instead(key.replaced_by)
        return finding(
            key.name,
            value,
            origin,
            severity="warning",
            sentence=sentence,
            guidelines=key.guidelines,
            hint=hint,
        )
    if key.since:
        sentence = f"new in Spark {key.since}: older releases ignore it"
        return finding(key.name, value, origin, severity="info", sentence=sentence, guidelines=key.guidelines)
    return None


def _advice(key: Key, value: str, origin: str) -> Finding | None:
    if key.advice is None or key.status != "alive" or "${" in value or not key.is_unwise(value):
        return None
    return finding(
        key.name,
        value,
        origin,
        severity="warning",
        sentence=key.advice.say,
        guidelines=key.guidelines,
    )
