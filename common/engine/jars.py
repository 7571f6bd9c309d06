"""Jars that the suite fetches itself: by Ivy, which Spark ships, and used only when their digest is right.

A jar lies in the clone's `.cache/jars` or the user's cache folder, with a promise beside it: the digest, and
the size and time of the file when it was checked. A file that is no longer as promised is checked anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs

import common
from common.core.units import format_bytes, format_seconds
from common.engine.programs import ask
from common.settings.accelerators import Jar

_LOG = logging.getLogger("saltpan.engine")
_ROOT = Path(common.__file__).resolve().parents[1]

TIMEOUT_SECONDS = 180.0
# Without a network a run does not try again at once.
RETRY_AFTER_SECONDS = 600.0


@dataclass(frozen=True)
class Fetched:
    """A jar that can be used, or why there is none."""

    path: Path | None
    problem: str = ""


def jar_folder() -> Path:
    """Where jars are kept: in the clone the suite runs from, else in the user's cache folder."""
    if (_ROOT / "Makefile").is_file() and (_ROOT / "pyproject.toml").is_file() and os.access(_ROOT, os.W_OK):
        return _ROOT / ".cache" / "jars"
    return platformdirs.user_cache_path("saltpan", appauthor=False) / "jars"


def fetch_jar(
    jar: Jar,
    *,
    java: str,
    spark_home: str,
    folder: Path | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Fetched:
    """The jar, from the cache folder or else from the network.

    Args:
        jar: What it is called and what its digest must be.
        java: The program that runs Ivy.
        spark_home: Folder of the Spark whose jars hold Ivy.
        folder: Where jars are kept; by default `jar_folder()`.
        timeout_seconds: For the whole of it, waiting for another run included.

    Returns:
        Its path, or the reason in one clause. Nothing is raised: a run goes on without it.
    """
    home = folder or jar_folder()
    target = home / jar.file_name
    try:
        if _is_as_promised(target, jar):
            return Fetched(target)
        home.mkdir(parents=True, exist_ok=True)
        with _alone(home / f".{jar.file_name}.lock", timeout_seconds=timeout_seconds):
            return _checked_or_fetched(target, jar, java, spark_home, timeout_seconds=timeout_seconds)
    except filelock.Timeout:
        return Fetched(None, f"another run has been fetching it for {format_seconds(timeout_seconds)}")
    except OSError as error:
        return Fetched(None, f"{home} cannot be used ({error.strerror or error})")


def _checked_or_fetched(
    target: Path, jar: Jar, java: str, spark_home: str, *, timeout_seconds: float
) -> Fetched:
    if _is_as_promised(target, jar) or _promise(target, jar):
        return Fetched(target)
    if target.exists():
        _LOG.warning("%s is not the jar that was tried: it is fetched anew", target)
        target.unlink()
    failure = target.with_suffix(".failed")
    last = _last_failure(failure)
    if last:
        return Fetched(None, last)
    problem = _fetch(target, jar, java, spark_home, timeout_seconds=timeout_seconds)
    if problem is None and not _promise(target, jar):
        target.unlink(missing_ok=True)
        problem = "what was fetched is not the jar that was tried"
    if problem is not None:
        failure.write_text(problem, "utf-8")
        return Fetched(None, problem)
    failure.unlink(missing_ok=True)
    return Fetched(target)


@contextmanager
def _alone(path: Path, *, timeout_seconds: float) -> Iterator[None]:
    """One process at a time, where the file system has locks; a rename keeps the others safe."""
    with ExitStack() as stack:
        try:
            stack.enter_context(filelock.FileLock(path, timeout=timeout_seconds))
        except NotImplementedError as error:
            _LOG.debug("no lock on %s: %s", path, error)
        yield


def _is_as_promised(target: Path, jar: Jar) -> bool:
    """True when nobody has touched the file since its digest was found right."""
    try:
        return bool(json.loads(_beside(target).read_text("utf-8")) == _state(target, jar))
    except (OSError, ValueError):
        return False


def _promise(target: Path, jar: Jar) -> bool:
    """Check the digest, and write down that it is right."""
    try:
        state = _state(target, jar)
        with target.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return False
    if digest != jar.sha256 or state != _state(target, jar):
        return False
    part = target.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(state), "utf-8")
    part.replace(_beside(target))
    return True


def _beside(target: Path) -> Path:
    return target.with_suffix(".json")


def _state(target: Path, jar: Jar) -> dict[str, str | int]:
    status = target.stat()
    return {
        "sha256": jar.sha256,
        "size_bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "changed_ns": status.st_ctime_ns,
    }


def _last_failure(path: Path) -> str:
    """What went wrong a short while ago; empty when it is time to try again."""
    try:
        age_seconds = time.time() - path.stat().st_mtime
        if not 0 <= age_seconds < RETRY_AFTER_SECONDS:
            return ""
        return f"{path.read_text('utf-8')} (tried {format_seconds(age_seconds)} ago)"
    except (OSError, UnicodeDecodeError):
        return ""


def _fetch(target: Path, jar: Jar, java: str, spark_home: str, *, timeout_seconds: float) -> str | None:
    """Have Ivy put the jar in place; what went wrong, or None."""
    ivy = next(iter(sorted((Path(spark_home) / "jars").glob("ivy-*.jar"))), None)
    if ivy is None:
        return f"there is no Ivy among the jars of {spark_home}"
    _LOG.info("fetching %s (%s), once", jar.coordinates, format_bytes(jar.size_bytes))
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".part-", ignore_cleanup_errors=True) as name:
        part = Path(name)
        command = [java, "-cp", str(ivy), "org.apache.ivy.Main"]
        command += ["-dependency", *jar.coordinates.split(":"), "-notransitive", "-types", "jar"]
        command += ["-retrieve", str(part / "[artifact].[ext]"), "-cache", str(part / "ivy"), "-warn"]
        try:
            ran = ask(command, timeout_seconds=timeout_seconds)
        except subprocess.TimeoutExpired:
            return f"nothing came within {format_seconds(timeout_seconds)}"
        found = part / f"{jar.coordinates.split(':')[1]}.jar"
        if not found.is_file():
            return _said(ran.stdout + ran.stderr)
        shutil.move(found, target)
    return None


def _said(text: str) -> str:
    """The line of Ivy's report that tells why: what the server or the network answered, else "not found"."""
    lines = [line.strip(" :\t") for line in text.splitlines()]
    telling = [line for line in lines if "error" in line.lower() and "(" in line]
    telling += [line for line in lines if line.endswith("not found")]
    return re.sub(r" at url \S+", "", telling[0])[:200] if telling else "Ivy did not find it"
