"""A class-data archive per JVM and class path: Spark's thousands of classes are mapped instead of parsed.

The first run records it when its JVM ends, later ones use it. A truncated archive would crash the JVM, so
one is taken only when its size and digest are those of the day it was checked.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from common.engine.programs import ask

_LOG = logging.getLogger("saltpan.engine")

# A JVM that cannot use its archive says so on stdout, among the data.
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")

# What Spark's launcher puts on the class path besides its own jars.
_ON_CLASS_PATH = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
_ABANDONED_AFTER_SECONDS = 2 * 24 * 3600.0
_LAUNCHER_SECONDS = 30.0


@dataclass(frozen=True)
class Archive:
    """The archive for one JVM and one class path.

    Attributes:
        path: Where it is, or will be.
        usable: It is there, whole, and of this JVM and class path.
    """

    path: Path
    usable: bool

    @property
    def recording(self) -> Path:
        """The name under which this process records it."""
        return self.path.with_suffix(f".{os.getpid()}.part")

    def options(self) -> tuple[str, ...]:
        """The JVM options that use the archive, or record it when there is none."""
        use, path = (
            ("SharedArchiveFile", self.path) if self.usable else ("ArchiveClassesAtExit", self.recording)
        )
        text = f"-XX:{use}={path}"
        return (*QUIET, f'"{text}"' if " " in text else text)


def find_archive(java_home: str, spark_home: str, *, folder: Path | None = None) -> Archive | None:
    """The archive for this Java and this Spark; None where none can work.

    Args:
        java_home: Folder of the Java that will run.
        spark_home: Folder of the Spark whose jars it will load.
        folder: Where archives are kept; the user's cache folder by default.
    """
    if _has_folders(spark_home):
        return None
    if " " in str(Path(spark_home).absolute()):
        # Java 17 maps the archive, and loads the classes of such jars from the jars all the same.
        _LOG.debug("no class archive: there is a space in %s", spark_home)
        return None
    home = folder or platformdirs.user_cache_path("saltpan", appauthor=False) / "classes"
    try:
        home.mkdir(parents=True, exist_ok=True)
        _clear_up(home)
    except OSError as error:
        _LOG.debug("no class archive: %s", error)
        return None
    path = home / f"{_key(java_home, spark_home)}.jsa"
    return Archive(path, _is_whole(path))


def _has_folders(spark_home: str) -> bool:
    """True when Spark's launcher puts a folder with files on the class path, which rules archives out."""
    conf = Path(os.environ.get("SPARK_CONF_DIR", f"{spark_home}/conf"))
    return (conf.is_dir() and any(conf.iterdir())) or any(os.environ.get(name) for name in _ON_CLASS_PATH)


def _clear_up(home: Path) -> None:
    """Remove recordings whose process was killed: no JVM writes one for days."""
    for part in home.glob("*.part"):
        with suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > _ABANDONED_AFTER_SECONDS:
                part.unlink()


def _key(java_home: str, spark_home: str) -> str:
    """What must be the same for an archive to fit: the JVM, and every jar by place, size and time."""
    digest = hashlib.sha256()
    for path in [Path(java_home) / "release", Path(java_home) / "lib" / "modules", *_jars(spark_home)]:
        try:
            status = path.stat()
        except OSError:
            continue
        digest.update(f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:24]


def _jars(spark_home: str) -> list[Path]:
    return sorted((Path(spark_home) / "jars").glob("*.jar"))


def _is_whole(path: Path) -> bool:
    try:
        promised = json.loads(path.with_suffix(".json").read_text("utf-8"))
        same_size = path.stat().st_size == int(promised["size_bytes"])
        return same_size and digest_of(path) == str(promised["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def digest_of(path: Path) -> str:
    """BLAKE2 of a file's content: a tenth of a second for an archive."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def launch_class_path(java: str, spark_home: str, *, environ: Mapping[str, str]) -> str | None:
    """The class path that Spark's launcher gives a driver; None when it does not tell.

    A recording is checked with it, so that one made with any other class path is not kept.
    """
    scala = next((path.name for path in _jars(spark_home) if path.name.startswith("scala-library-")), "")
    version = ".".join(scala.removeprefix("scala-library-").split(".")[:2])
    command = [java, "-cp", str(Path(spark_home) / "jars" / "*"), "org.apache.spark.launcher.Main"]
    try:
        done = ask(
            [*command, "org.apache.spark.deploy.SparkSubmit", "--version"],
            timeout_seconds=_LAUNCHER_SECONDS,
            environ={**environ, "SPARK_HOME": spark_home, "SPARK_SCALA_VERSION": version},
        )
        done.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.debug("no class archive: Spark's launcher does not answer (%s)", error)
        return None
    words = done.stdout.split("\0")  # the command that it would run
    return words[words.index("-cp") + 1] if "-cp" in words[:-1] else None


def keep_recording(archive: Archive, *, jvm_pid: int | None, java: str, class_path: str) -> None:
    """Start a small process that waits for the JVM's end, checks what it recorded, and puts it in place.

    A JVM of our own writes the archive after this process has ended, so nobody here can wait for it. None
    stands for a JVM that has ended.
    """
    if archive.usable:
        return
    words = [str(archive.recording), str(archive.path), str(jvm_pid or ""), java, class_path]
    subprocess.Popen(
        [sys.executable, "-m", "common.engine.archive_keeper", *words],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
