"""What each kind of engine can do, and since which release of Spark."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

EngineKind = Literal["classic", "connect"]


@dataclass(frozen=True)
class Capability:
    """One thing that an engine may be able to do.

    Attributes:
        name: As strategies name it: "rdd".
        what: In words, for messages.
        since: Kind of engine to the first Spark release that has it; kinds that lack it are left out.
        tried: The Spark release on which this was last found so by trying.
    """

    name: str
    what: str
    since: Mapping[EngineKind, tuple[int, ...]]
    tried: str


@cache
def known_capabilities() -> Mapping[str, Capability]:
    """All capabilities by name."""
    text = files("common.settings").joinpath("engines.toml").read_text(encoding="utf-8")
    return {
        name: Capability(name, row["what"], _since(row), row["tried"])
        for name, row in tomllib.loads(text).items()
    }


def capabilities(kind: EngineKind, *, spark_version: str) -> frozenset[str]:
    """What an engine of this kind and release can do.

    >>> "rdd" in capabilities("classic", spark_version="4.1.3")
    True
    >>> "top_k_aggregate" in capabilities("connect", spark_version="4.1.3")
    False
    """
    release = release_of(spark_version)
    return frozenset(
        name
        for name, capability in known_capabilities().items()
        if kind in capability.since and capability.since[kind] <= release
    )


def lacking(needs: Iterable[str], *, available: Collection[str]) -> str | None:
    """Why a strategy with these needs cannot run on an engine with these capabilities; None when it can.

    Raises:
        KeyError: a need that is not there, and that engines.toml does not know.

    >>> lacking(["rdd", "observe"], available={"observe"})
    'it needs RDDs, which this engine does not have'
    """
    missing = [known_capabilities()[name].what for name in needs if name not in available]
    return f"it needs {' and '.join(missing)}, which this engine does not have" if missing else None


def release_of(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with.

    >>> release_of("4.1.3"), release_of("4.2.0-SNAPSHOT"), release_of("4.1.1-amzn-0")
    ((4, 1, 3), (4, 2, 0), (4, 1, 1))
    """
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _since(row: Mapping[str, bool | str]) -> dict[EngineKind, tuple[int, ...]]:
    kinds: tuple[EngineKind, ...] = ("classic", "connect")
    return {kind: () if row[kind] is True else release_of(str(row[kind])) for kind in kinds if row[kind]}
