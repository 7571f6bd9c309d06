"""All that keeps Spark from starting or workers from answering, looked at without starting a JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from common.engine.checked import Checked, checked
from common.engine.installation import foreign_common
from common.engine.java import check_java, check_spark_home
from common.engine.network import check_host_name, check_ports
from common.engine.scratch import check_open_files, check_space, check_unpacking
from common.engine.shadowing import check_current_folder
from common.engine.worker_python import check_worker_imports, find_worker_python


def start_checks(
    environ: Mapping[str, str],
    *,
    folder: Path | None,
    settings: Mapping[str, str] | None = None,
    site: str = "local",
) -> list[Checked]:
    """Make every start-up check; none stops the others.

    Args:
        environ: The environment that Spark would be started with.
        folder: The current folder; None when it is gone.
        settings: Spark's settings, as a profile composes them.
        site: Where workers run: with "local" in the current folder, with "standalone" on machines that have
            this one's Python, else on machines of their own.
    """
    given = settings or {}
    python = {"PYSPARK_PYTHON": given.get("spark.pyspark.python", ""), **environ}
    here = site in ("local", "standalone")
    checks: dict[str, Callable[[], Checked]] = {
        "Java": lambda: _java(environ),
        "Spark": lambda: _spark(environ),
        "worker Python": lambda: _worker_python(python, here=here),
    }
    if site == "local":
        checks["current folder"] = lambda: _current_folder(folder, environ)
    checks |= {
        "host name": lambda: check_host_name(environ),
        "ports": lambda: check_ports(environ, given),
        "disk space": lambda: check_space(environ, given),
        "native code": lambda: check_unpacking(environ, given),
        "open files": check_open_files,
    }
    return [checked(name, check) for name, check in checks.items()]


def _java(environ: Mapping[str, str]) -> Checked:
    found = check_java(environ)
    return Checked("Java", "ok", f"Java {found.text} in {found.home}")


def _spark(environ: Mapping[str, str]) -> Checked:
    version = check_spark_home(environ)
    home = environ.get("SPARK_HOME")
    return Checked("Spark", "ok", f"Spark {version}, {f'SPARK_HOME is {home}' if home else 'from pip'}")


def _worker_python(environ: Mapping[str, str], *, here: bool) -> Checked:
    found = find_worker_python(environ, local=here)
    if not here:
        return Checked("worker Python", "ok", "on the workers' own machines, which are not looked at")
    return check_worker_imports(found)


def _current_folder(folder: Path | None, environ: Mapping[str, str]) -> Checked:
    found = check_current_folder(folder, environ)
    foreign = foreign_common(folder) if folder else None
    if found.state == "ok" and foreign is not None and not environ.get("PYTHONSAFEPATH"):
        sentence = f"{foreign} has the name of the suite's package: workers leave this folder out"
        return Checked("current folder", "warning", sentence, "rename it, or start from another folder")
    return found
