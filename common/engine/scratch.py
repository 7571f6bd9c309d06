"""Where Spark writes what does not fit in memory, and what its libraries unpack: room, rights, limits."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from common.core.errors import EngineError
from common.core.units import format_bytes
from common.engine.checked import Checked

_MEBIBYTE = 1 << 20
# The suite's package, the job's files and Spark's own bookkeeping at the start.
STOPS_BYTES = 16 * _MEBIBYTE
# A shuffle writes what it moves once, and a sort that does not fit in memory once more: 2 GiB carry an
# input of about 1 GiB, 16 times what the suite takes for small.
LOW_BYTES = 2048 * _MEBIBYTE
# Spark keeps its jars open, some 290. A JVM that may open 200 files did not start, one with 600 did.
STOPS_FILES = 512
# A task of a shuffle opens a file for each of up to 200 partitions (spark.shuffle.sort.bypassMergeThreshold):
# this is 16 tasks at a time, and the jars.
LOW_FILES = 4096
_TEMPORARY = re.compile(r"-Djava\.io\.tmpdir=(\"[^\"]*\"|'[^']*'|\S+)")


def temporary_folder(environ: Mapping[str, str], settings: Mapping[str, str]) -> Path:
    """Java's java.io.tmpdir: what its options say, the last of them, else /tmp; TMPDIR is Python's only."""
    variables = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")  # the strongest first
    options = [settings.get("spark.driver.extraJavaOptions", "")]
    options += [environ.get(name, "") for name in variables]
    named = (found for text in options for found in reversed(_TEMPORARY.findall(text)))
    default = tempfile.gettempdir() if sys.platform == "darwin" else "/tmp"  # as in the JDK
    return Path(next(named, default).strip("\"'"))


def scratch_folders(environ: Mapping[str, str], settings: Mapping[str, str]) -> tuple[str, list[Path]]:
    """What names the folders of shuffles and spills, and the folders, by Spark's own order."""
    if environ.get("CONTAINER_ID") and environ.get("LOCAL_DIRS"):
        return "LOCAL_DIRS", _paths(environ["LOCAL_DIRS"])
    if environ.get("SPARK_LOCAL_DIRS"):
        return "SPARK_LOCAL_DIRS", _paths(environ["SPARK_LOCAL_DIRS"])
    if settings.get("spark.local.dir"):
        return "spark.local.dir", _paths(settings["spark.local.dir"])
    return "java.io.tmpdir", [temporary_folder(environ, settings)]


def check_space(environ: Mapping[str, str], settings: Mapping[str, str]) -> Checked:
    """Whether shuffles and spills have a folder that may be written, and room in it.

    Below 16 MiB Spark does not start. Below 2 GiB is a warning: a shuffle writes what it moves once, and a
    sort that does not fit in memory once more, so that 2 GiB carry an input of about 1 GiB.

    Raises:
        EngineError: there is no folder that may be written, or hardly any room in all of them.
    """
    origin, folders = scratch_folders(environ, settings)
    looked_at = {folder: _problem(folder) for folder in folders}
    problems = [problem for problem in looked_at.values() if problem]
    usable = [folder for folder, problem in looked_at.items() if problem is None]
    hint = "set SPARK_LOCAL_DIRS to a folder on a disk with room (on a cluster its own settings name it)"
    if not usable:
        got = "; ".join(problems) or "none"
        raise EngineError(
            "folder for spills", origin, expected="a folder that may be written", got=got, hint=hint
        )
    free = {folder: shutil.disk_usage(_existing(folder)).free for folder in usable}
    place, least = min(free.items(), key=lambda item: item[1])
    if max(free.values()) < STOPS_BYTES:
        expected, got = f"{format_bytes(STOPS_BYTES)} free or more", f"{format_bytes(least)} in {place}"
        raise EngineError("disk space from", origin, expected=expected, got=got, hint=hint)
    sentence = f"{format_bytes(least)} free for shuffles and spills in {place} ({origin})"
    if problems:
        return Checked("disk space", "warning", f"{sentence}; left out: {'; '.join(problems)}", hint)
    if least < LOW_BYTES:
        sentence = f"{sentence}; below {format_bytes(LOW_BYTES)} large inputs may not fit"
        return Checked("disk space", "warning", sentence, hint)
    return Checked("disk space", "ok", sentence)


def check_unpacking(environ: Mapping[str, str], settings: Mapping[str, str]) -> Checked:
    """Whether snappy, zstd and Comet can load the libraries that they unpack into java.io.tmpdir."""
    folder = temporary_folder(environ, settings)
    problem = _problem(folder) if folder.is_dir() else f"{folder} is no folder"
    if problem is None and os.statvfs(_existing(folder)).f_flag & getattr(os, "ST_NOEXEC", 0):
        problem = f"{folder} is mounted noexec"
    if problem is None:
        return Checked("native code", "ok", f"can be unpacked and run in {folder} (java.io.tmpdir)")
    sentence = f"snappy, zstd and Comet cannot unpack their libraries: {problem}"
    hint = "export JAVA_TOOL_OPTIONS=-Djava.io.tmpdir=FOLDER, a folder where programs may run"
    return Checked("native code", "warning", sentence, hint)


def check_open_files() -> Checked:
    """Whether the JVM may open enough files: by the hard limit, to which Java raises its own.

    Raises:
        EngineError: not even Spark's jars can all be opened.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= LOW_FILES:
        shown = "any number" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        return Checked("open files", "ok", f"{shown} (ulimit -Hn)")
    hint = f"raise the hard limit (`ulimit -Hn`, /etc/security/limits.conf, docker --ulimit) to {LOW_FILES:,}"
    if hard < STOPS_FILES:
        expected = f"{STOPS_FILES} or more, for Spark keeps its jars open"
        raise EngineError("open files", "ulimit -Hn", expected=expected, got=str(hard), hint=hint)
    sentence = f"{hard:,} (ulimit -Hn): shuffles of many partitions on many cores may need more"
    return Checked("open files", "warning", sentence, hint)


def _paths(text: str) -> list[Path]:
    return [Path(part.strip()) for part in text.split(",") if part.strip()]


def _existing(folder: Path) -> Path:
    """The folder, or the one that it would be made in."""
    return next((place for place in (folder, *folder.parents) if place.exists()), Path("/"))


def _problem(folder: Path) -> str | None:
    """Why nothing can be written to this folder, if so. Spark makes it when it is not there."""
    place = _existing(folder)
    if not place.is_dir():
        return f"{place} is no folder"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"{place} may not be written"
    return None
