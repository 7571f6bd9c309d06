"""The suite as one zip that workers can import from: the same bytes for the same sources."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import platformdirs

import common
from common.core.errors import UsageError

# The oldest date that a zip can hold; a real one would change the bytes from build to build.
_DATE = (1980, 1, 1, 0, 0, 0)
_SUFFIXES = frozenset({".py", ".toml", ".conf", ".properties", ".typed"})
_ROOT = Path(common.__file__).resolve().parents[1]


def package_bytes(packages: Iterable[str] = ("common",)) -> bytes:
    """The packages' sources and data files as a zip, sorted, with fixed dates."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for name in packages for path in (_ROOT / name).rglob("*")):
            if path.is_file() and path.suffix in _SUFFIXES:
                entry = zipfile.ZipInfo(path.relative_to(_ROOT).as_posix(), date_time=_DATE)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def worker_package(folder: Path | None = None) -> Path:
    """Write the zip of `common` for the workers, named by its content; one that is there is left alone.

    It stays: a session that is not ours goes on serving the file to its executors after our run.

    Args:
        folder: Where to keep it; the user's cache folder by default, or the temporary one if that is barred.
    """
    if _ROOT.is_file():
        return _ROOT  # the driver itself runs from such a zip
    return kept_package(package_bytes(), prefix="saltpan_common", folder=folder)


def kept_package(content: bytes, *, prefix: str, folder: Path | None = None) -> Path:
    """The file that holds an archive's bytes, written if it is not there.

    Args:
        content: The archive.
        prefix: Of its name, which ends in a digest of the content.
        folder: Where to keep it; the user's cache folder by default, or the temporary one if that is barred.
    """
    name = f"{prefix}_{hashlib.sha256(content).hexdigest()[:16]}.zip"
    if folder is not None:
        return _kept(folder / name, content)
    try:
        return _kept(platformdirs.user_cache_path("saltpan", appauthor=False) / name, content)
    except OSError:
        return _kept(Path(tempfile.gettempdir()) / f"saltpan-{os.getuid()}" / name, content)


def _kept(path: Path, content: bytes) -> Path:
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    return path


def main(argv: list[str]) -> int:
    """Write the zip of `common` and `jobs` for --py-files to the named file."""
    if len(argv) != 1 or not argv[0].endswith(".zip"):
        raise UsageError("arguments", " ".join(argv), expected="one TARGET.zip", got=f"{len(argv)} arguments")
    target = Path(argv[0])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(package_bytes(("common", "jobs")))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
