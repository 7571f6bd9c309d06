"""One writer per output: a lock file beside it that the kernel releases when its process dies."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path
from typing import IO

from filelock import lock_descriptor

from common.core.errors import LockedError

_ATTEMPTS = 100


class OutputLock:
    """The exclusive lock on one output of a local file system; never waits.

    The lock is `flock` on the lock file, so a killed process holds nothing, whatever it left behind. The file
    holds the owner's run id and pid for the others' message, and its owner removes it *before* letting go.
    That is safe because a lock only counts while its path still leads to the very file that was locked: a run
    that opened the file just before it was removed sees that, and starts again with a new file.

    Args:
        path: The lock file; its folder exists.
        name: The output as the user knows it.
        run_id: Who asks.
    """

    def __init__(self, path: str, *, name: str, run_id: str) -> None:
        self._path, self._name, self._run_id = Path(path), name, run_id
        self._file: IO[bytes] | None = None

    def acquire(self) -> None:
        """Take the lock or fail at once; `release` is called afterwards in either case.

        Raises:
            LockedError: Another run holds it; names its run id and process.
            FileNotFoundError: The folder is gone.
            OSError: The folder cannot be written, the disk is full, or the file system has no locks.
        """
        for _ in range(_ATTEMPTS):
            file = self._open()
            try:
                if not lock_descriptor(file.fileno(), blocking=False):
                    raise self._held(file)
                if self._is_at_path(file):
                    self._file = file
            finally:
                if self._file is not file:
                    file.close()
            if self._file is not None:
                self._write_holder(file)
                return
        raise LockedError("output", self._name, expected="no other run on it", got="runs that come and go")

    @property
    def is_held(self) -> bool:
        """True while this run is the one and only holder."""
        return self._file is not None and self._is_at_path(self._file)

    def check(self) -> None:
        """Make sure, before something irrevocable, that nobody has taken the lock file away.

        Raises:
            LockedError: The lock file was removed or replaced while this run worked.
        """
        if not self.is_held:
            raise LockedError(
                "output",
                self._name,
                expected=f"this run's lock file {self._path}",
                got="a lock file that was removed or replaced",
                hint="another run may be writing; run again, and leave lock files to the runs",
            )

    def release(self) -> None:
        """Remove the lock file and let the lock go; harmless when it is not held."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if self._is_at_path(file):
                self._path.unlink()
        finally:
            file.close()

    def _open(self) -> IO[bytes]:
        # Not truncated: the content belongs to the holder. Python makes it close in children, which could
        # otherwise keep the lock of a run that is dead.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        return open(self._path, "r+b", buffering=0, opener=lambda path, _: os.open(path, flags, 0o666))

    def _is_at_path(self, file: IO[bytes]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.lstat(self._path))
        except FileNotFoundError:
            return False
        except OSError as problem:
            if problem.errno == errno.ESTALE:  # NFS: removed by another machine
                return False
            raise

    def _write_holder(self, file: IO[bytes]) -> None:
        holder = {"run_id": self._run_id, "pid": os.getpid(), "host": socket.gethostname()}
        file.truncate(0)
        file.write(json.dumps(holder).encode())

    def _held(self, file: IO[bytes]) -> LockedError:
        who = _describe(file.read())
        hint = "wait until it has ended, or write to another output"
        return LockedError("output", self._name, expected="no other run on it", got=who, hint=hint)


def _describe(content: bytes) -> str:
    try:
        holder = json.loads(content)
        who = f"run {holder['run_id']} (pid {holder['pid']}"
        return f"{who} on {holder['host']})" if holder["host"] != socket.gethostname() else f"{who})"
    except (ValueError, KeyError, TypeError):
        return "a run that has just begun"
