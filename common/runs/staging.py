"""Writing an output so that nothing is ever half-published: stage beside it, then rename."""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from common.core.errors import EngineError, OutputExistsError
from common.engine.storage import FileEntry, Storage
from common.runs.locking import OutputLock
from common.runs.overlap import refuse_overlap
from common.runs.recovery import RUN_FILE, end, is_folder, recover, retire, writable
from common.runs.targets import Target

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 100
_UNFINISHED = ("_temporary", ".spark-staging")


class StagedOutput:
    """The writing of one output folder `NAME` by one run `R`, as a context manager.

    Entering takes the lock, repairs what a killed run left and refuses what cannot be published. The engine
    then writes to `staging_path` (`.NAME.staging-R`, which does not exist yet). `publish` moves the former
    output to `.NAME.old-R`, the staging folder to `NAME`, and deletes the former one. Leaving without
    `publish`, for whatever reason, deletes the staging folder; leaving in the middle of it puts the former
    output back, unless the new one is in place already: then it stays and the former one goes.

    On a local file system the lock `.NAME.lock` is held from entering to leaving, and the kernel lets go of
    it when the process dies. Remote storages have no lock: there, one run at a time per output is up to the
    scheduler, and a rename is one step only where the storage makes it one (HDFS does, object stores do
    not). This guards against the death of the process at any moment, not against a machine that loses power
    before its disks have what was written.

    Args:
        target: The output folder as typed. A link to a folder is followed: see `Target`.
        run_id: Letters, digits, `_`, `+` and `-`.
        mode: "error" refuses an output that exists, "overwrite" replaces it as a whole.
        storage: Where the target lies.
        inputs: What the run reads, as typed; see `refuse_overlap`.

    Attributes:
        staging_path: The folder for the engine's writer.
        published: True once the new output is in place.

    Raises:
        UsageError: The target overlaps an input, or must never be replaced (see `Target.check`).
    """

    def __init__(
        self,
        target: str,
        *,
        run_id: str,
        mode: Literal["error", "overwrite"],
        storage: Storage,
        inputs: Sequence[str] = (),
    ) -> None:
        self._target = Target.of(target)
        self._target.check(run_id)
        refuse_overlap(target, inputs)
        self._run_id, self._mode, self._storage = run_id, mode, storage
        self._lock: OutputLock | None = None
        if self._target.is_local:
            self._lock = OutputLock(self._target.lock_path, name=target, run_id=run_id)
        self._began = False
        self._made_folders: list[Path] = []
        self.staging_path = self._target.staging(run_id)
        self.published = False

    def __enter__(self) -> Self:
        """Take the lock and make the place ready.

        Raises:
            LockedError: Another run writes this output.
            OutputExistsError: It exists and mode is "error", or it is a file.
            OutputUnwritableError: Its folder cannot be made or written.
        """
        try:
            with writable(self._target):
                self._begin()
                self._began = True
                recover(self._target, storage=self._storage)
                self._storage.delete_tree(self.staging_path)  # remote: an earlier attempt of this very run
            self._refuse_existing()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def restart(self) -> None:
        """Empty the staging folder, for an engine that writes once more."""
        self._storage.delete_tree(self.staging_path)

    @property
    def target(self) -> Target:
        """Where it goes."""
        return self._target

    def mark(self, content: bytes) -> None:
        """Write the run's name into what is staged.

        Raises:
            EngineError: The staging folder holds no file, or what an unfinished commit leaves.
        """
        self._refuse_unfinished()
        self._storage.write(f"{self.staging_path}/{RUN_FILE}", content)

    def publish(self) -> None:
        """Put the staged output in place of the former one.

        Raises:
            EngineError: The staging folder holds no file, or what an unfinished commit leaves.
            OutputExistsError: The output has appeared and mode is "error".
            LockedError: Somebody removed this run's lock file.
            OutputUnwritableError: A folder may not be renamed.
        """
        target, storage = self._target, self._storage
        self._refuse_unfinished()
        self._refuse_existing()
        if self._lock is not None:
            self._lock.check()
        with writable(target):
            replaces = self._mode == "overwrite" and storage.exists(target.path)
            if replaces:
                storage.rename(target.path, target=target.old(self._run_id))
            try:
                storage.rename(self.staging_path, target=target.path)
            except FileExistsError as problem:
                raise self._exists(
                    got="one that has appeared at this moment", hint="run it again"
                ) from problem
            self.published = True
            if replaces:
                retire(target, self._run_id, storage=storage)

    def _begin(self) -> None:
        if self._lock is None:
            return
        parent = Path(self._target.parent)
        for _ in range(_ATTEMPTS):
            missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
            self._made_folders.extend(folder for folder in missing if folder not in self._made_folders)
            if missing:
                self._storage.make_folders(str(parent))
            try:
                self._lock.acquire()
            except FileNotFoundError:
                continue  # another run failed and removed the folder that it had made, at this very moment
            return
        raise PermissionError(errno.EACCES, "no file can be made in it", str(parent))

    def _refuse_existing(self) -> None:
        path = self._target.path
        if not self._storage.exists(path):
            return
        if not is_folder(path, storage=self._storage):
            got, hint = "a file of that name", "name a folder, or move the file away"
        elif self._mode == "error":
            got, hint = "an output that is there already", "add --mode overwrite to replace it as a whole"
        elif foreign := self._foreign(self._storage.children(path)):
            got = f"a folder with what no run has written ({', '.join(foreign[:3])})"
            hint = "overwriting would delete it; name another folder, or empty this one yourself"
        else:
            return
        raise self._exists(got=got, hint=hint)

    def _foreign(self, entries: Sequence[FileEntry]) -> list[str]:
        """Names in the target that no finished write leaves; a folder with its marker is a run's own."""
        names = [entry.name for entry in entries]
        if "_SUCCESS" in names:
            return []
        return [name for name in names if not name.startswith(("part-", ".", "_"))]

    def _exists(self, *, got: str, hint: str) -> OutputExistsError:
        return OutputExistsError("output", self._target.given, expected="a new folder", got=got, hint=hint)

    def _refuse_unfinished(self) -> None:
        staging, storage = self.staging_path, self._storage
        entries = storage.children(staging) if is_folder(staging, storage=storage) else []
        unfinished = sorted(entry.name for entry in entries if entry.name.startswith(_UNFINISHED))
        if unfinished:
            got = f"the leftovers of an unfinished commit ({', '.join(unfinished)})"
        elif not self._holds_file(entries):
            got = "no file"
        else:
            return
        expected = "what a finished write leaves"
        raise EngineError(
            "staged output", self._target.given, expected=expected, got=got, hint="run it again"
        )

    def _holds_file(self, entries: Sequence[FileEntry]) -> bool:
        if any(not entry.is_folder and not entry.name.startswith(".") for entry in entries):
            return True
        folders = (entry.path for entry in entries if entry.is_folder)
        return any(self._holds_file(self._storage.children(folder)) for folder in folders)

    def _leave(self) -> None:
        try:
            if self._began:
                end(self._target, self._run_id, storage=self._storage)
        except OSError as problem:
            # Not the reason of a failure, and the next run repairs the rest.
            _LOG.warning("cannot clean up beside %s: %s", self._target.path, problem)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
        if self.published:
            return
        for folder in self._made_folders:
            # Filled by another run, or gone: then it is not ours to remove.
            with suppress(OSError):
                folder.rmdir()
