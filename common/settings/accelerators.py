"""What is known about each accelerator: its jar, and the Spark and the machines it is made for."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from common.core.errors import UnknownNameError, did_you_mean


@dataclass(frozen=True)
class Jar:
    """A jar in a Maven repository.

    Attributes:
        coordinates: "group:artifact:version".
        sha256: Hexadecimal digest of the jar that was tried.
        size_bytes: Its size.
    """

    coordinates: str
    sha256: str
    size_bytes: int

    @property
    def file_name(self) -> str:
        """As repositories name the file.

        >>> Jar("org.example:quick_2.13:1.0", "", 0).file_name
        'quick_2.13-1.0.jar'
        """
        _, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"


@dataclass(frozen=True)
class Accelerator:
    """One accelerator.

    Attributes:
        name: As profiles name it: "comet".
        jar: What it consists of.
        spark: Releases it is made for: "4.1" is every 4.1.x, "4.1.3" only that one.
        scala: The Scala version it is made for.
        systems: "linux-x86_64", …: where its native library runs.
        plan_prefix: How its operators begin in a plan.
        tried: The release of Spark on which its answers were last found right.
        cpu_flags: System to what its CPU must have.
    """

    name: str
    jar: Jar
    spark: tuple[str, ...]
    scala: str
    systems: tuple[str, ...]
    plan_prefix: str
    tried: str
    cpu_flags: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def suits_spark(self, version: str) -> bool:
        """True when it is made for this release.

        >>> accelerator("comet").suits_spark("4.1.3"), accelerator("comet").suits_spark("4.10.0")
        (True, False)
        """
        return any(version == release or version.startswith(f"{release}.") for release in self.spark)


@cache
def known_accelerators() -> Mapping[str, Accelerator]:
    """All accelerators by name."""
    text = files("common.settings").joinpath("accelerators.toml").read_text(encoding="utf-8")
    return {
        name: Accelerator(
            name=name,
            jar=Jar(row["coordinates"], row["sha256"], row["size_bytes"]),
            spark=tuple(row["spark"]),
            scala=row["scala"],
            systems=tuple(row["systems"]),
            plan_prefix=row["plan_prefix"],
            tried=row["tried"],
            cpu_flags={system: frozenset(flags) for system, flags in row.get("cpu_flags", {}).items()},
        )
        for name, row in tomllib.loads(text).items()
    }


def accelerator(name: str) -> Accelerator:
    """The accelerator of this name.

    Raises:
        UnknownNameError: there is none.
    """
    known = known_accelerators()
    if name not in known:
        expected = f"one of {', '.join(known)}"
        raise UnknownNameError(
            "accelerator", name, expected=expected, got=repr(name), hint=did_you_mean(name, known)
        )
    return known[name]
