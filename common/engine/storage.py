"""Where files are: one small protocol, and the local file system behind it."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


_NOTHING = frozenset({errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG})


@dataclass(frozen=True)
class FileEntry:
    """One file or folder, as its file system describes it.

    Attributes:
        path: Full path, spelled so that the storage it came from finds it again.
        size_bytes: 0 for folders.
        modified_seconds: Since the epoch, UTC.
        is_folder: True for a folder, or a link to one.
    """

    path: str
    size_bytes: int
    modified_seconds: float
    is_folder: bool

    @property
    def name(self) -> str:
        """The last component of the path.

        >>> FileEntry("/data/day=1/part.csv", 10, 0.0, False).name
        'part.csv'
        """
        return self.path.rstrip("/").rsplit("/", 1)[-1]


class Storage(Protocol):
    """What the suite needs of a file system. Failures are the standard OSError leaves."""

    @property
    def is_local(self) -> bool:
        """True for files that Python opens itself."""

    def resolve(self, path: str) -> str:
        """The path as all other methods return it: absolute, without a slash at its end."""

    def entry(self, path: str) -> FileEntry:
        """What is at the path; FileNotFoundError when nothing is."""

    def exists(self, path: str) -> bool:
        """True when something is at the path."""

    def children(self, path: str) -> Sequence[FileEntry]:
        """What is directly in a folder, by name."""

    def head(self, path: str, *, size_bytes: int) -> bytes:
        """The first bytes of a file; fewer when it is shorter."""

    def write(self, path: str, content: bytes) -> None:
        """Make a small file in a folder that is there."""

    def refusal(self, entry: FileEntry) -> str | None:
        """Why the engine could not read this entry, or None; cheap, so not every reason is found."""

    def rename(self, source: str, *, target: str) -> None:
        """Move a file or folder to a name that is free; FileExistsError when it is not."""

    def delete_tree(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing there is fine."""

    def make_folders(self, path: str) -> None:
        """Make a folder and its parents; being there already is fine."""


class LocalStorage:
    """The file system of this machine."""

    is_local = True

    def resolve(self, path: str) -> str:
        """Absolute path of a plain path or a file: URL. Percent signs stay as they are, as in Hadoop.

        >>> LocalStorage().resolve("file:///data/a%20b/")
        '/data/a%20b'
        """
        return str(Path(os.path.abspath(local_path(path))))  # noqa: PTH100  Hadoop drops `..` as text too

    def entry(self, path: str) -> FileEntry:
        """What is at the path."""
        plain = local_path(path)
        try:
            status = Path(plain).stat()
        except (NotADirectoryError, ValueError) as error:  # a file used as a folder; a NUL in the name
            raise FileNotFoundError(path) from error
        except OSError as error:
            if error.errno in _NOTHING:
                raise FileNotFoundError(path) from error
            raise
        folder = stat.S_ISDIR(status.st_mode)
        return FileEntry(plain, 0 if folder else status.st_size, status.st_mtime, folder)

    def exists(self, path: str) -> bool:
        """True when something is at the path, be it a broken link."""
        return os.path.lexists(local_path(path))

    def children(self, path: str) -> Sequence[FileEntry]:
        """What is directly in a folder, by name; a link to nothing is an entry of 0 bytes."""
        with os.scandir(local_path(path)) as found:
            return sorted((_scanned(item) for item in found), key=lambda entry: entry.path)

    def head(self, path: str, *, size_bytes: int) -> bytes:
        """The first bytes of a file."""
        with Path(local_path(path)).open("rb") as file:
            return file.read(size_bytes)

    def write(self, path: str, content: bytes) -> None:
        """Make a small file in a folder that is there."""
        Path(local_path(path)).write_bytes(content)

    def refusal(self, entry: FileEntry) -> str | None:
        """Names that Spark cannot open, missing rights, pipes and devices, links to nothing."""
        if any("\udc80" <= character <= "\udcff" for character in entry.name):
            return "a name that is not UTF-8, which Spark cannot open; rename it"
        if not entry.is_folder and ":" in entry.name:
            return "a colon in a file's name, which Hadoop takes for a URL; rename it"
        plain = Path(entry.path)
        if not plain.exists():
            return "a link to nothing"
        if not entry.is_folder and not plain.is_file():
            return "a pipe or a device, not a file"
        wanted = os.R_OK | (os.X_OK if entry.is_folder else 0)
        return None if os.access(plain, wanted) else "no permission to read it"

    def rename(self, source: str, *, target: str) -> None:
        """Move a file or folder to a name that is free."""
        if self.exists(target):
            raise FileExistsError(target)
        Path(local_path(source)).rename(local_path(target))

    def delete_tree(self, path: str) -> None:
        """Remove a file or a whole folder; of a link, the link only."""
        plain = Path(local_path(path))
        if plain.is_dir() and not plain.is_symlink():
            shutil.rmtree(plain)
        else:
            plain.unlink(missing_ok=True)

    def make_folders(self, path: str) -> None:
        """Make a folder and its parents."""
        Path(local_path(path)).mkdir(parents=True, exist_ok=True)


def _scanned(item: os.DirEntry[str]) -> FileEntry:
    try:
        status = item.stat()
    except OSError as error:
        if error.errno not in _NOTHING:
            raise
        return FileEntry(item.path, 0, 0.0, is_folder=False)
    folder = stat.S_ISDIR(status.st_mode)
    return FileEntry(item.path, 0 if folder else status.st_size, status.st_mtime, folder)


def scheme_of(path: str) -> str:
    """The URL scheme of a path, lower-case; empty for a plain path.

    >>> scheme_of("s3a://bucket/key"), scheme_of("file:/data"), scheme_of("data/a:b.csv")
    ('s3a', 'file', '')
    """
    match = _URL.match(path)
    return match[1].lower() if match else ""


def is_local_path(path: str) -> bool:
    """True for plain paths and file: URLs."""
    return scheme_of(path) in ("", "file")


def local_path(path: str) -> str:
    """A plain path from a plain path or a file: URL; nothing is decoded.

    >>> local_path("file:/data/x"), local_path("file:///data/x"), local_path("data/x")
    ('/data/x', '/data/x', 'data/x')
    """
    if scheme_of(path) != "file":
        return path
    rest = path[len("file:") :]
    return rest[2:] if rest.startswith("//") else rest


def engine_path(path: str) -> str:
    """A path as an engine is given it: a local one as a URL, since its own default may be another system.

    >>> engine_path("/data/x"), engine_path("hdfs://host/x"), engine_path("file:///data/x")
    ('file:///data/x', 'hdfs://host/x', 'file:///data/x')
    """
    return f"file://{path}" if path.startswith("/") else path


def storage_for(path: str, spark: SparkSession | None = None) -> Storage | None:
    """The storage that holds a path.

    Args:
        path: A plain path or a URL.
        spark: The session, once there is one: other schemes go through its Hadoop file systems.

    Returns:
        None when the suite cannot look: another scheme before there is a session, or on Connect.
    """
    if is_local_path(path):
        return LocalStorage()
    if spark is None or type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    from common.engine.hadoop_storage import HadoopStorage

    return HadoopStorage(spark)
