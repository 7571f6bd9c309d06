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
from dataclasses import dataclass
from pathlib import Path

import platformdirs

_LOG = logging.getLogger("saltpan.engine")

# A JVM that cannot use its archive says so on stdout, among the data.
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


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
    if _has_conf_files(spark_home):
        return None  # a folder with files on the class path rules archives out
    home = folder or platformdirs.user_cache_path("saltpan", appauthor=False) / "classes"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _LOG.debug("no class archive: %s", error)
        return None
    path = home / f"{_key(java_home, spark_home)}.jsa"
    return Archive(path, _is_whole(path))


def _has_conf_files(spark_home: str) -> bool:
    conf = Path(os.environ.get("SPARK_CONF_DIR", f"{spark_home}/conf"))
    return conf.is_dir() and any(conf.iterdir())


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


def keep_recording(archive: Archive, *, jvm_pid: int, java: str, class_path: str) -> None:
    """Start a small process that waits for the JVM's end, checks what it recorded, and puts it in place.

    The JVM writes the archive after this process has ended, so nobody here can wait for it.
    """
    if archive.usable:
        return
    words = [str(archive.recording), str(archive.path), str(jvm_pid), java, class_path]
    subprocess.Popen(
        [sys.executable, "-m", "common.engine.archive_keeper", *words],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
