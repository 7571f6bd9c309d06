"""The process's real stderr, where spark-submit has merged it into stdout."""

from __future__ import annotations

import os
from collections.abc import Mapping

from common.engine.session import under_submit


def separate_stderr(environ: Mapping[str, str]) -> bool:
    """Give this process its own stderr back; True when it was merged into stdout and now is not.

    spark-submit starts Python with stderr redirected to stdout, so that logs would land in the data. Where
    the system shows a process's files (/proc), the stderr of spark-submit itself is opened instead.
    Elsewhere all stays as it is.
    """
    if not under_submit(environ) or not os.path.sameopenfile(1, 2):
        return False
    try:
        # Appending, because the file may be shared with the JVM.
        descriptor = os.open(f"/proc/{os.getppid()}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return False
    os.dup2(descriptor, 2)
    os.close(descriptor)
    return True
