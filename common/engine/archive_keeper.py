"""A process of its own: waits until a JVM has written its class archive, checks it, puts it in place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from common.engine.class_archive import QUIET, digest_of
from common.engine.programs import ask

_WAIT_SECONDS = 24 * 3600.0
_CHECK_SECONDS = 60.0


def keep(recording: Path, target: Path, *, jvm_pid: int | None, java: str, class_path: str) -> bool:
    """Put the archive in place once the JVM has ended (None: it has); True when it was whole."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while jvm_pid is not None and _is_alive(jvm_pid) and time.monotonic() < deadline:
        time.sleep(0.5)
    try:
        if not _loads(recording, java=java, class_path=class_path):
            return False
        promise = {"size_bytes": recording.stat().st_size, "digest": digest_of(recording)}
        # The promise first: an archive without one, or with another's, is not used.
        part = target.with_suffix(f".{os.getpid()}.json.part")
        part.write_text(json.dumps(promise), "utf-8")
        part.replace(target.with_suffix(".json"))
        recording.replace(target)
    except OSError:
        return False
    finally:
        recording.unlink(missing_ok=True)
    return True


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _loads(recording: Path, *, java: str, class_path: str) -> bool:
    """True when a JVM maps the archive and finds every region's checksum right."""
    flags = ["-Xshare:on", "-XX:+VerifySharedSpaces", f"-XX:SharedArchiveFile={recording}", *QUIET]
    try:
        done = ask([java, *flags, "-cp", class_path, "-version"], timeout_seconds=_CHECK_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def main(argv: list[str]) -> int:
    """RECORDING TARGET JVM_PID JAVA CLASS_PATH; an empty JVM_PID is a JVM that has ended."""
    recording, target, pid, java, class_path = argv
    jvm_pid = int(pid) if pid else None
    kept = keep(Path(recording), Path(target), jvm_pid=jvm_pid, java=java, class_path=class_path)
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
