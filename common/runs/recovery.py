"""What a killed run left beside its output, and how the output becomes whole again."""

from __future__ import annotations

import errno
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from common.core.errors import LockedError, OutputUnwritableError, SuiteError
from common.engine.globs import fixed_folder, is_glob
from common.engine.storage import Storage
from common.runs.locking import OutputLock
from common.runs.targets import Target, is_root, resolve

_LOG = logging.getLogger(__name__)
_RENAMES_TAKE_SECONDS = 1.0

RUN_FILE = "_RUN.json"
"""In an output with companions, and in each of them: the run that made it."""
REJECTS, BAD_ROWS = ".rejects", ".bad-rows"
"""What follows the name of an output in those of its companions."""
_HEAD_BYTES = 4096


def recover(target: Target, *, storage: Storage) -> None:
    """Make the output whole and remove what dead runs left; the caller holds the lock on a local target.

    - `.NAME.old-*` with the output missing: the run died between its two renames, and the newest one is put
      back. With the output there, the new one is the truth, and the old ones go.
    - Companions of a run whose output is still staged were published without it: they are taken back. Of one
      that has published its output, the former companions go.
    - `.NAME.staging-*` goes: nobody else can be writing. On a remote storage, where there is no lock, the
      runs may be alive: their folders are named in a warning and stay.

    Raises:
        OSError: The folder cannot be read, or the old output cannot be put back.
    """
    names = _names_beside(target, storage=storage)
    if target.is_local:
        _settle_companions(target, names, storage=storage)
    for run_id in target.run_ids("staging", names):
        if target.is_local:
            discard(target.staging(run_id), storage=storage)
        else:
            _LOG.warning("left over by run %s, unless it is alive: %s", run_id, target.staging(run_id))
    _settle(target, target.run_ids("old", names), storage=storage)


def end(target: Target, run_id: str, *, storage: Storage) -> None:
    """The same for the folders of one run, by the run itself, whether it has published or failed.

    Raises:
        OSError: The former output cannot be put back.
    """
    discard(target.staging(run_id), storage=storage)
    if storage.exists(target.old(run_id)):
        _settle(target, [run_id], storage=storage)


def _settle(target: Target, run_ids: list[str], *, storage: Storage) -> None:
    """Put the last of these runs' former outputs back when the output is missing; delete the others."""
    if run_ids and not storage.exists(target.path):
        *run_ids, newest = run_ids
        storage.rename(target.old(newest), target=target.path)
        _LOG.warning("publishing in run %s did not end; the former output is back: %s", newest, target.path)
    for run_id in run_ids:
        retire(target, run_id, storage=storage)


def _settle_companions(target: Target, names: list[str], *, storage: Storage) -> None:
    published = run_of(target.path, storage=storage)
    unpublished = [run_id for run_id in target.run_ids("staging", names) if run_id != published]
    for suffix in (REJECTS, BAD_ROWS):
        for run_id in unpublished:
            take_back(target, suffix, run_id, storage=storage)
        for run_id in target.companion_run_ids("staged", suffix, names):
            discard(target.companion_staging(suffix, run_id), storage=storage)
        for run_id in target.companion_run_ids("former", suffix, names):
            discard(target.companion_old(suffix, run_id), storage=storage)


def take_back(target: Target, suffix: str, run_id: str, *, storage: Storage) -> None:
    """Make a companion what it was before a run that has not published its output.

    Raises:
        OSError: The former one cannot be put back.
    """
    path, former = target.companion(suffix), target.companion_old(suffix, run_id)
    if run_of(path, storage=storage) == run_id:
        discard(path, storage=storage)
        _LOG.warning("run %s did not publish its output; taken back: %s", run_id, path)
    if storage.exists(former) and not storage.exists(path):
        storage.rename(former, target=path)


def run_of(folder: str, *, storage: Storage) -> str | None:
    """The run that an output or a companion says it is of; None when it says nothing."""
    try:
        said = json.loads(storage.head(f"{folder}/{RUN_FILE}", size_bytes=_HEAD_BYTES))
    except (OSError, ValueError):
        return None
    run_id = said.get("run_id") if isinstance(said, dict) else None
    return run_id if isinstance(run_id, str) else None


def retire(target: Target, run_id: str, *, storage: Storage) -> None:
    """Delete a former output that is no longer needed.

    Where a rename is one step it first takes the name of a staging folder, so that what is half deleted when
    the process is killed can never be taken for a former output and put back.
    """
    doomed = target.old(run_id)
    if target.is_local:
        doomed = target.staging(run_id)
        storage.rename(target.old(run_id), target=doomed)
    discard(doomed, storage=storage)


def discard(path: str, *, storage: Storage) -> None:
    """Delete a folder beside the output; one that resists is named in a warning and left to the next run."""
    try:
        storage.delete_tree(path)
    except OSError as problem:
        _LOG.warning("cannot delete %s (%s); the next run will try again", path, problem)


def is_folder(path: str, *, storage: Storage) -> bool:
    """True for a folder, or a link to one."""
    try:
        return storage.entry(path).is_folder
    except FileNotFoundError:
        return False


def _names_beside(target: Target, *, storage: Storage) -> list[str]:
    """What is in the target's parent, the oldest first."""
    if not is_folder(target.parent, storage=storage):
        return []
    entries = sorted(storage.children(target.parent), key=lambda entry: (entry.modified_seconds, entry.name))
    return [entry.name for entry in entries]


def restore_if_interrupted(path: str, *, storage: Storage) -> bool:
    """Put a former output back that a killed run moved away: for a reader whose path is absent.

    The path may be the output, something inside it or a glob: what counts is the first folder on the way that
    is absent. A run that is between its two renames at this very moment is given a second to finish.

    Args:
        path: What the reader wants to read.
        storage: Where it lies.

    Returns:
        True when that folder was absent and is there now.

    Raises:
        OutputUnwritableError: A former output is there, but the reader may not put it back.
    """
    target = _first_absent(path, storage=storage)
    if target is None or not target.run_ids("old", _names_beside(target, storage=storage)):
        return False
    lock = OutputLock(target.lock_path, name=target.given, run_id="reader") if target.is_local else None
    try:
        with writable(target):
            if lock is not None:
                lock.acquire()
            recover(target, storage=storage)
    except LockedError:
        return _appears(target, storage=storage)
    finally:
        if lock is not None:
            lock.release()
    return storage.exists(target.path)


def _first_absent(path: str, *, storage: Storage) -> Target | None:
    resolved = resolve(path)
    if is_glob(resolved) and not storage.exists(resolved):
        resolved = fixed_folder(resolved)
    absent = None
    while not is_root(resolved) and not storage.exists(resolved):
        absent = Target.of(resolved)
        resolved = absent.parent
    return absent


def _appears(target: Target, *, storage: Storage) -> bool:
    deadline = time.monotonic() + _RENAMES_TAKE_SECONDS
    while not storage.exists(target.path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _refusal(problem: OSError) -> str | None:
    if isinstance(problem, PermissionError):
        return "permission denied"
    if isinstance(problem, NotADirectoryError | FileExistsError):
        return "a file above it"
    if problem.errno == errno.EROFS:
        return "a read-only file system"
    return "no file locks" if problem.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP) else None


@contextmanager
def writable(target: Target) -> Iterator[None]:
    """Translate a refusal by the file system; a full disk and everything else passes as it is.

    Raises:
        OutputUnwritableError: Permission denied, a read-only file system, or a file where a folder is needed.
    """
    try:
        yield
    except SuiteError:
        raise
    except OSError as problem:
        reason = _refusal(problem)
        if reason is None:
            raise
        raise OutputUnwritableError(
            "output",
            target.given,
            expected=f"a folder {target.parent} that can be written",
            got=f"{reason} at {problem.filename or target.parent}",
            hint="write somewhere else, or have the rights changed",
        ) from problem
