"""Files that a reader sees whole: the old one or the new one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write the text and a line end beside the file, then put it in its place in one step.

    Raises:
        OSError: the folder cannot be made or written; nothing is left then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            # Undecodable bytes of a path come as lone surrogates; as \\udcXX they are valid JSON.
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
