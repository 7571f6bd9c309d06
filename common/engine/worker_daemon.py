"""Spark's daemon of Python workers, for whom an archive is read again only when it has changed.

Before each task Spark empties Python's import caches (until 4.2: SPARK-54744), upon which Python (until
3.13: gh-103200) reads the directories of all archives on its path again: Spark's largest jar and, once for
each of its packages, PySpark's own zip. That is a third of a second in which the task does nothing.
"""

from __future__ import annotations

import importlib
import sys
import zipimport
from collections.abc import Callable, Mapping
from importlib.metadata import distributions
from pathlib import Path

import pyspark

from common.engine.worker_python import find_worker_python

MODULE_KEY = "spark.python.daemon.module"
_CURED_PYTHON = (3, 13)
_CURED_SPARK = (4, 2)


def daemon_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The setting that makes this module the daemon of workers on this machine; none where it cures nothing.

    Args:
        environ: PYSPARK_PYTHON names the workers' Python, which must have the suite.

    Raises:
        InstallationError: there is no such Python, or of another version.
    """
    spark = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if sys.version_info >= _CURED_PYTHON or spark >= _CURED_SPARK:
        return {}
    return {MODULE_KEY: __name__} if find_worker_python(environ).is_ours and _is_installed() else {}


def _is_installed() -> bool:
    """Whether any process of this Python can import the suite, wherever it is started."""
    return next(iter(distributions(name="saltpan")), None) is not None


def read_when_changed(
    read: Callable[[zipimport.zipimporter], None],
) -> Callable[[zipimport.zipimporter], None]:
    """`zipimporter.invalidate_caches` for archives that are seldom written.

    Args:
        read: Python's own.
    """
    stamps: dict[tuple[str, str], tuple[int, int] | None] = {}

    def invalidate_caches(importer: zipimport.zipimporter) -> None:
        key, stamp = (importer.archive, importer.prefix), _stamp(importer.archive)
        if stamp is None or stamps.get(key) != stamp:
            read(importer)
            stamps[key] = stamp

    return invalidate_caches


def _stamp(archive: str) -> tuple[int, int] | None:
    try:
        found = Path(archive).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _forget_the_suite() -> None:
    """Workers import the suite that the driver ships, which need not be the one that is installed here."""
    for name in [name for name in sys.modules if name == "common" or name.startswith("common.")]:
        del sys.modules[name]


def main() -> None:
    """Run Spark's daemon."""
    own = zipimport.zipimporter.invalidate_caches
    zipimport.zipimporter.invalidate_caches = read_when_changed(own)  # type: ignore[method-assign,assignment]
    from pyspark.daemon import manager

    importlib.invalidate_caches()  # here once, and not in each of the processes that it forks
    _forget_the_suite()
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
