"""What must be true of the machine before Spark starts, and where Spark itself comes from."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import common
from common.core.errors import InstallationError

_NEEDED = ("pydantic", "cyclopts", "rich", "filelock", "platformdirs", "pyarrow", "pandas")


def find_packages(environ: Mapping[str, str]) -> None:
    """Make PySpark importable, from pip or else from SPARK_HOME, and name what else is missing.

    Raises:
        InstallationError: a package that the driver needs is not there.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if importlib.util.find_spec("pyspark") is None:
        if environ.get("SPARK_HOME") and importlib.util.find_spec("findspark"):
            import findspark

            findspark.init()
        else:
            missing.insert(0, "pyspark")
    if missing:
        raise InstallationError(
            "Python",
            sys.executable,
            expected=f"the packages {', '.join(missing)}",
            got="a Python without them",
            hint="run `pip install saltpan`, or set PYSPARK_PYTHON to a Python that has it",
        )


def foreign_common(folder: Path) -> Path | None:
    """Another package or module called `common` in this folder; workers would import it instead of ours.

    Spark starts its Python workers in the driver's current folder, which comes first on their path.
    """
    ours = Path(common.__file__).resolve().parent
    for place in (folder / "common", folder / "common.py"):
        if place.exists() and place.resolve() != ours:
            return place
    return None


def prepare_installation(environ: Mapping[str, str], *, workers_here: bool = True) -> None:
    """Check Java, SPARK_HOME and the workers' Python before a gateway starts.

    Args:
        environ: The process's environment.
        workers_here: The workers run on this machine, so that their Python can be looked at.

    Raises:
        JavaError: Java is missing or older than 17.
        InstallationError: versions that do not go together.
    """
    from common.engine.java import check_java, check_spark_home, check_worker_python

    check_java(environ)
    check_spark_home(environ)
    check_worker_python(environ, local=workers_here)
