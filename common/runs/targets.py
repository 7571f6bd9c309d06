"""Where an output goes: the target folder and the names beside it that a run uses while it writes."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.core.errors import ParameterError, UsageError
from common.engine.storage import is_local_path, local_path

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*")
_NAME_LIMIT_BYTES = 255


@dataclass(frozen=True)
class Target:
    """An output folder, resolved once so that every run means the same place by it.

    A symbolic link is followed: the output replaces the folder it points to, is staged beside that folder
    (the same file system, so that a rename is one step) and locked there, whichever link it was reached by.

    Attributes:
        given: The path as typed, for messages.
        parent: The folder that holds it; absolute for a local path, a URL otherwise.
        name: Its last component.
        is_local: True for a path of this machine's file system.
    """

    given: str
    parent: str
    name: str
    is_local: bool

    @classmethod
    def of(cls, path: str) -> Target:
        """Resolve `path`.

        Raises:
            UsageError: The path is empty, or its name is too long to stand beside its own staging folder.

        >>> Target.of("hdfs://nn:8020/out/top 10/").staging("r1")
        'hdfs://nn:8020/out/.top 10.staging-r1'
        """
        resolved = resolve(path)
        root, _, name = resolved.rpartition("/")
        if is_root(resolved):
            raise _refused(path, got="the root of a file system")
        return cls(given=path, parent=root or "/", name=name, is_local=is_local_path(path))

    @property
    def path(self) -> str:
        """The resolved folder."""
        return self._beside(self.name)

    @property
    def lock_path(self) -> str:
        """The lock file: it exists while a run writes, and after one was killed."""
        return self._beside(f".{self.name}.lock")

    def staging(self, run_id: str) -> str:
        """The folder that the engine writes to in run `run_id`."""
        return self._beside(f".{self.name}.staging-{run_id}")

    def old(self, run_id: str) -> str:
        """Where run `run_id` puts the former output while it publishes."""
        return self._beside(f".{self.name}.old-{run_id}")

    def companion(self, suffix: str) -> str:
        """A folder that belongs to this output, such as `NAME.rejects`."""
        return self._beside(f"{self.name}{suffix}")

    def companion_staging(self, suffix: str, run_id: str) -> str:
        """Where run `run_id` writes such a folder; no output has names of this form."""
        return self._beside(f".{self.name}.staged{suffix}-{run_id}")

    def companion_old(self, suffix: str, run_id: str) -> str:
        """Where run `run_id` puts the former one until its output is published."""
        return self._beside(f".{self.name}.former{suffix}-{run_id}")

    def companion_run_ids(
        self, kind: Literal["staged", "former"], suffix: str, names: Sequence[str]
    ) -> list[str]:
        """The run ids of such folders among `names`.

        >>> Target.of("/data/a").companion_run_ids("former", ".rejects", [".a.former.rejects-r1", ".b"])
        ['r1']
        """
        return self._ids(f".{self.name}.{kind}{suffix}-", names)

    def run_ids(self, kind: Literal["staging", "old"], names: Sequence[str]) -> list[str]:
        """The run ids of this target's folders of a kind among `names`, in their order.

        A run id holds no dot, so the leftovers of a target called `a.old-b` are never taken for those of `a`.

        >>> Target.of("/data/a").run_ids("old", [".a.old-r2", ".a.old-r1", ".a.old-b.old-r3", ".b.old-r4"])
        ['r2', 'r1']
        """
        return self._ids(f".{self.name}.{kind}-", names)

    def _ids(self, prefix: str, names: Sequence[str]) -> list[str]:
        suffixes = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        return [suffix for suffix in suffixes if _RUN_ID.fullmatch(suffix)]

    def check(self, run_id: str) -> None:
        """Refuse what must never be replaced, and names that do not fit.

        Raises:
            ParameterError: `run_id` is not made of letters, digits, `_`, `+` and `-`.
            UsageError: The target is the current or the home folder, a folder above one of them or a mount
                point; or the staging name would be longer than file systems allow.
        """
        if not _RUN_ID.fullmatch(run_id):
            raise ParameterError(
                "parameter", "run_id", expected="letters, digits, `_`, `+` and `-`", got=repr(run_id)
            )
        if not self.is_local:
            return
        longest_bytes = len(os.fsencode(Path(self.staging(run_id)).name))
        if longest_bytes > _NAME_LIMIT_BYTES:
            spare_bytes = _NAME_LIMIT_BYTES - longest_bytes + len(os.fsencode(self.name))
            got = f"{len(os.fsencode(self.name))} bytes"
            raise UsageError("output", self.given, expected=f"a name of at most {spare_bytes} bytes", got=got)
        for is_it, what in _PROTECTED:
            if is_it(self.path):
                raise _refused(self.given, got=what)

    def _beside(self, name: str) -> str:
        return f"{self.parent.rstrip('/') if self.parent == '/' else self.parent}/{name}"


def resolve(path: str) -> str:
    """The one spelling of a place: absolute, links followed, no `.`, `..`, doubled or trailing slash.

    Raises:
        UsageError: The path is empty.

    >>> resolve("hdfs:/a//b/../c/"), resolve("s3a://bucket/")
    ('hdfs:///a/c', 's3a://bucket')
    """
    if not path.strip():
        raise UsageError("path", path, expected="the name of a file or folder", got="nothing")
    if is_local_path(path):
        return "/" + os.path.realpath(local_path(path)).lstrip("/")
    scheme, _, rest = path.partition(":/")
    authority, _, inside = rest.removeprefix("/").partition("/") if rest.startswith("/") else ("", "", rest)
    return f"{scheme}://{authority}" + posixpath.normpath("/" + inside.lstrip("/")).rstrip("/")


def is_root(resolved: str) -> bool:
    """True when there is nothing above a resolved path."""
    return resolved == "/" if is_local_path(resolved) else resolved.count("/") == 2


def _holds(place: Callable[[], Path]) -> Callable[[str], bool]:
    def check(path: str) -> bool:
        real = os.path.realpath(place())
        return os.path.commonpath([real, path]) == path

    return check


_PROTECTED: tuple[tuple[Callable[[str], bool], str], ...] = (
    (_holds(Path.cwd), "the current folder or one above it"),
    (_holds(Path.home), "the home folder or one above it"),
    (os.path.ismount, "a mount point"),
    (os.path.islink, "a link that leads back to itself"),
)


def _refused(given: str, *, got: str) -> UsageError:
    expected = "a folder that may be replaced as a whole"
    return UsageError("output", given, expected=expected, got=got, hint="name a new folder inside it")
