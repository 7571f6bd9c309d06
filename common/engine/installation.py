"""What must be true of the machine before Spark starts, and where Spark itself comes from."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Mapping
from pathlib import Path

import common
from common.core.errors import InstallationError
from common.engine.shadowing import check_beside_job

_LOG = logging.getLogger("saltpan.engine")
_NEEDED = ("pydantic", "cyclopts", "rich", "filelock", "platformdirs", "pyarrow", "pandas")


def find_packages(environ: Mapping[str, str]) -> None:
    """Make PySpark importable, from pip or else from SPARK_HOME, and name what else is missing.

    Raises:
        InstallationError: a package that the driver needs is not there, or a file beside the job hides one.
    """
    beside = _folder_of_script()
    if beside is not None:
        check_beside_job(beside)
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


def _folder_of_script() -> Path | None:
    """The folder of the running job file, when imports look into it; None in a notebook."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    folder = Path(file).resolve().parent if file else None
    return folder if folder and any(Path(place).resolve() == folder for place in sys.path) else None


def foreign_common(folder: Path) -> Path | None:
    """Another package or module called `common` in this folder; workers would import it instead of ours.

    Spark starts its Python workers in the driver's current folder, which comes first on their path.
    """
    ours = Path(common.__file__).resolve().parent
    for place in (folder / "common", folder / "common.py"):
        if place.exists() and place.resolve() != ours:
            return place
    return None


def prepare_installation(
    environ: Mapping[str, str],
    *,
    workers_here: bool = True,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Check before a gateway starts what would end it, or have workers answer with another's functions.

    Args:
        environ: The process's environment.
        workers_here: The workers run on this machine, in the current folder.
        settings: Spark's; without them it is not known where it listens and spills.

    Raises:
        JavaError: Java is missing or older than 17.
        InstallationError: versions that do not go together, packages that workers lack or would not get.
        EngineError: a host without an address, no port, no room, too few open files.
    """
    from common.engine.shadowing import check_current_folder
    from common.engine.worker_python import check_worker_packages, find_worker_python

    prepare_gateway(environ, settings=settings)
    check_worker_packages(find_worker_python(environ, local=workers_here))
    if workers_here:
        check_current_folder(current_folder(), environ)


def prepare_gateway(environ: Mapping[str, str], *, settings: Mapping[str, str] | None = None) -> None:
    """The part of `prepare_installation` that is about the driver, wherever the workers are.

    Raises:
        JavaError: Java is missing or older than 17.
        InstallationError: no Spark, or two of different versions.
        EngineError: a host without an address, no port, no room, too few open files.
    """
    from common.engine.java import check_java, check_spark_home
    from common.engine.network import check_host_name, check_ports
    from common.engine.scratch import check_open_files, check_space

    check_java(environ)
    check_spark_home(environ)
    check_open_files()
    check_host_name(environ)
    if settings is not None:
        check_ports(environ, settings)
        space = check_space(environ, settings)
        if space.state == "warning":
            _LOG.warning("%s: %s", space.name, space.sentence)


def current_folder() -> Path | None:
    """The folder that this process and its workers are in; None when somebody has removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None
