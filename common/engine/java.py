"""Whether Java suits Spark, and SPARK_HOME is the Spark imported."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.core.errors import InstallationError, JavaError
from common.engine.java_packages import install_command
from common.engine.programs import said_by

MINIMUM_JAVA = 17
MINIMUM_SPARK = (4, 1)


@dataclass(frozen=True)
class JavaVersion:
    """A Java that can be run.

    Attributes:
        version: Its feature release: 8, 11, 17, 21.
        text: As it calls itself: "1.8.0_402", "17.0.15", "21-ea".
        home: The folder above its bin.
    """

    version: int
    text: str
    home: str

    @property
    def program(self) -> str:
        """The java itself."""
        return str(Path(self.home) / "bin" / "java")


def check_java(environ: Mapping[str, str] = os.environ) -> JavaVersion:
    """The Java that Spark's launcher will use, without starting it when its release file tells the version.

    Raises:
        JavaError: there is none, it cannot be run, or it is older than 17.
    """
    home = environ.get("JAVA_HOME", "")
    program = _java_of(home) if home else shutil.which("java", path=environ.get("PATH"))
    found = _version_of(program)
    if found is not None and found.version >= MINIMUM_JAVA:
        return found
    name = "JAVA_HOME" if home else "PATH"
    got = f"Java {found.text} in {found.home}" if found else _what_is_there(home, program)
    hint = f"install one with `{install_command()}`"
    if home:
        other = _version_of(shutil.which("java", path=environ.get("PATH")))
        if other is not None and other.version >= MINIMUM_JAVA:
            hint = f"unset JAVA_HOME: the java on PATH is {other.text}"
    raise JavaError("Java from", name, expected=f"Java {MINIMUM_JAVA} or newer", got=got, hint=hint)


def parse_version(text: str) -> tuple[int, str] | None:
    """The feature release and the version in what `java -version` or a release file says.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15'), parse_version('JAVA_VERSION="1.8.0_402"')
    ((17, '17.0.15'), (8, '1.8.0_402'))
    """
    found = re.search(r'(?:version |JAVA_VERSION=)"(?P<text>(?:1\.)?(?P<major>\d+)[^"]*)"', text)
    return (int(found["major"]), found["text"]) if found else None


def _java_of(home: str) -> str | None:
    program = Path(home) / "bin" / "java"
    return str(program) if os.access(program, os.X_OK) and program.is_file() else None


def _what_is_there(home: str, program: str | None) -> str:
    if program:
        return f"a java that does not run ({program})"
    return f"no bin/java in {home}" if home else "no java on it"


def _version_of(program: str | None) -> JavaVersion | None:
    """The version of this java; None when there is none or it does not run."""
    if program is None:
        return None
    home = Path(program).resolve().parent.parent
    try:
        text = (home / "release").read_text("utf-8", errors="replace")
    except OSError:
        text = ""
    parsed = parse_version(text) or parse_version(said_by([program, "-version"]))
    return JavaVersion(parsed[0], parsed[1], str(home)) if parsed else None


def check_spark_home(environ: Mapping[str, str] = os.environ) -> str:
    """The version of the one Spark that will run, after making it importable where only SPARK_HOME has it.

    Raises:
        InstallationError: no Spark at all, one that is too old, or two that differ.
    """
    home = environ.get("SPARK_HOME", "")
    there = _spark_version(Path(home)) if home else None
    if home and there is None:
        hint = "unset SPARK_HOME to use the installed pyspark, or point it at a Spark folder"
        expected = "a Spark folder with its jars"
        raise InstallationError("folder", "SPARK_HOME", expected=expected, got=home, hint=hint)
    if home and importlib.util.find_spec("pyspark") is None:
        import findspark

        findspark.init(home)
    imported = _imported_version()
    if imported is None:
        hint = "run `pip install pyspark`, or set SPARK_HOME to a Spark folder"
        expected = "a pyspark that can be imported"
        raise InstallationError("package", "pyspark", expected=expected, got="none", hint=hint)
    if there is not None and _minor(there) != _minor(imported):
        expected, got = f"Spark {imported}, as the pyspark that is imported", f"Spark {there} in {home}"
        hint = f"unset SPARK_HOME, or run `pip install 'pyspark=={_minor(there)}.*'`"
        raise InstallationError("folder", "SPARK_HOME", expected=expected, got=got, hint=hint)
    if tuple(map(int, _minor(imported).split("."))) < MINIMUM_SPARK:
        oldest = ".".join(map(str, MINIMUM_SPARK))
        hint = f"run `pip install 'pyspark>={oldest}'`" + (" and unset SPARK_HOME" if home else "")
        raise InstallationError("package", "pyspark", expected=f"{oldest} or newer", got=imported, hint=hint)
    return imported


def spark_home(environ: Mapping[str, str]) -> Path:
    """The folder of the Spark that will run: SPARK_HOME, else the installed pyspark."""
    if environ.get("SPARK_HOME"):
        return Path(environ["SPARK_HOME"])
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec and spec.origin else Path()


def _spark_version(home: Path) -> str | None:
    """The version of the Spark in this folder, from its RELEASE file or the name of its core jar."""
    try:
        released = re.search(r"\bSpark (\d+\.\d+\.\S+)", (home / "RELEASE").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        released = None
    if released:
        return released[1]
    jars = sorted((home / "jars").glob("spark-core_*.jar"))
    named = re.search(r"spark-core_[\d.]+-(\d+\.\d+\.[^/]+)\.jar$", jars[0].name) if jars else None
    return named[1] if named else None


def _imported_version() -> str | None:
    """The version of the pyspark that an import would find, without importing it."""
    text = pyspark_source("version.py")
    found = re.search(r"__version__[^=]*= *[\"']([^\"']+)[\"']", text) if text is not None else None
    return found[1] if found else None


def pyspark_source(*parts: str) -> str | None:
    """A file of the pyspark that an import would find, without importing it; None when there is none."""
    spec = importlib.util.find_spec("pyspark")
    # Through the loader: under spark-submit pyspark is imported from a zip.
    get_data = getattr(spec.loader, "get_data", None) if spec else None
    if spec is None or spec.origin is None or get_data is None:
        return None
    try:
        return str(get_data(str(Path(spec.origin).parent.joinpath(*parts))), "utf-8")
    except OSError:
        return None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
