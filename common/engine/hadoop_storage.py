"""Files on hdfs, s3a and every other scheme of Hadoop, through the JVM of a classic session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from common.engine.storage import FileEntry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REQUIRES = frozenset({"classic"})

_KINDS: tuple[tuple[str, type[OSError]], ...] = (
    ("FileNotFoundException", FileNotFoundError),
    ("AccessControlException", PermissionError),
    ("AccessDeniedException", PermissionError),
    ("FileAlreadyExistsException", FileExistsError),
    ("ParentNotDirectoryException", NotADirectoryError),
)


class HadoopStorage:
    """Any Hadoop file system that the session's configuration can reach."""

    is_local = False

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark
        self._jvm = session._jvm
        self._configuration = session._jsc.hadoopConfiguration()

    def resolve(self, path: str) -> str:
        """The path without slashes at its end."""
        return path if re.fullmatch(r"[^:/]+:/+[^/]*/?", path) else path.rstrip("/")

    def entry(self, path: str) -> FileEntry:
        """What is at the path."""
        with _as_os_errors(path):
            return _entry(self._system(path).getFileStatus(self._path(path)), path=path)

    def exists(self, path: str) -> bool:
        """True when something is at the path."""
        try:
            self.entry(path)
        except FileNotFoundError:
            return False
        return True

    def children(self, path: str) -> Sequence[FileEntry]:
        """What is directly in a folder, by name."""
        with _as_os_errors(path):
            found = list(self._system(path).listStatus(self._path(path)))
            folder = path.rstrip("/")
            entries = [_entry(item, path=f"{folder}/{item.getPath().getName()}") for item in found]
        return sorted(entries, key=lambda entry: entry.path)

    def head(self, path: str, *, size_bytes: int) -> bytes:
        """The first bytes of a file."""
        with _as_os_errors(path):
            system, hadoop_path = self._system(path), self._path(path)
            wanted = min(size_bytes, system.getFileStatus(hadoop_path).getLen())
            stream = system.open(hadoop_path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, wanted))
            finally:
                stream.close()

    def write(self, path: str, content: bytes) -> None:
        """Make a small file."""
        with _as_os_errors(path):
            stream = self._system(path).create(self._path(path))
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()

    def refusal(self, entry: FileEntry) -> str | None:  # noqa: ARG002
        """None: asking for rights costs a call per file, so the engine finds out."""
        return None

    def rename(self, source: str, *, target: str) -> None:
        """Move a file or folder to a name that is free. Hadoop would move into an existing folder."""
        if self.exists(target):
            raise FileExistsError(target)
        with _as_os_errors(source):
            done = self._system(source).rename(self._path(source), self._path(target))
        if not done:
            self.entry(source)  # says so when the source is what is missing
            raise OSError(f"{source} could not be renamed to {target}")

    def delete_tree(self, path: str) -> None:
        """Remove a file or a whole folder."""
        with _as_os_errors(path):
            done = self._system(path).delete(self._path(path), True)
        if not done and self.exists(path):
            raise OSError(f"{path} could not be deleted")

    def make_folders(self, path: str) -> None:
        """Make a folder and its parents."""
        with _as_os_errors(path):
            done = self._system(path).mkdirs(self._path(path))
        if not done:
            raise OSError(f"{path} could not be made")

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._configuration)


def _entry(status: Any, *, path: str) -> FileEntry:
    folder = bool(status.isDirectory())
    size = 0 if folder else int(status.getLen())
    return FileEntry(path, size, status.getModificationTime() / 1000, folder)


@contextmanager
def _as_os_errors(path: str) -> Iterator[None]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raised = getattr(error, "java_exception", None)
        text = str(raised.toString() if raised is not None else error)
        kind = next((leaf for name, leaf in _KINDS if name in text.split(":", 1)[0]), OSError)
        raise kind(f"{path}: {text.splitlines()[0]}") from error
