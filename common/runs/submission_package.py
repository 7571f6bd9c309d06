"""The archive for --py-files: the suite, its jobs and its profiles, named by content."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import common
from common.engine.package import kept_package, package_bytes

_ROOT = Path(common.__file__).resolve().parents[1]
_DATE = (1980, 1, 1, 0, 0, 0)  # fixed, so that the same sources give the same bytes


def submission_package(folder: Path | None = None) -> Path:
    """Write the archive, named by its content; one that is there is left alone.

    Args:
        folder: Where to keep it; the user's cache folder by default, or the temporary one if that is barred.
    """
    content = _with_profiles(package_bytes(("common", "jobs")))
    return kept_package(content, prefix="saltpan", folder=folder)


def _with_profiles(content: bytes) -> bytes:
    """A clone's profiles lie beside the package; in the archive they are where an installation has them."""
    folder = _ROOT / "conf"
    if not (folder / "base.conf").is_file():
        return content
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            place = f"common/settings/conf/{path.relative_to(folder).as_posix()}"
            entry = zipfile.ZipInfo(place, date_time=_DATE)
            entry.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
