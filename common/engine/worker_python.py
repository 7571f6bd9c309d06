"""The Python that Spark's workers run: its version is the driver's, and it has what Arrow needs."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from common.core.errors import InstallationError
from common.engine.checked import Checked
from common.engine.java import pyspark_source
from common.engine.programs import said_by

_OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"
_NAMES = ("pandas", "pyarrow")
# What PySpark 4.1 wants, for a release that says it in other words; its conversions do not know pandas 3.
_LEAST = {"pandas": "2.2.0", "pyarrow": "15.0.0"}
_BELOW = {"pandas": "3"}
_IMPORT_SECONDS = 60.0
# The current folder is a matter of its own (see shadowing), so it is left out. Runs on any Python.
_START = "import sys; sys.path[:] = [p for p in sys.path if p]; print('%d.%d' % sys.version_info[:2])\n"
_LOOK = (
    _START
    + """\
if sys.version_info[:2] >= (3, 8):
    import importlib.metadata, importlib.util
    for name in sys.argv[1:]:
        try:
            print(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            print(name, "?" if importlib.util.find_spec(name) else "-")
"""
)
_IMPORT = (
    _START
    + """\
for name in sys.argv[1:]:
    try:
        print("%s %s" % (name, __import__(name).__version__))
    except Exception as error:
        said = "! %s: %s" % (type(error).__name__, " ".join(str(error).split()))
        print(name + " " + ("-" if getattr(error, "name", None) == name else said))
"""
)


@dataclass(frozen=True)
class WorkerPython:
    """A Python for the workers.

    Attributes:
        program: Its path; empty when it is on other machines only.
        version: Its minor version, "3.11".
        is_ours: It is the driver's own, in the same environment.
        packages: Versions by name, "-" when absent and "?" when unknown; empty unless it was asked.
    """

    program: str
    version: str
    is_ours: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)


def find_worker_python(environ: Mapping[str, str], *, local: bool = True) -> WorkerPython:
    """The Python that workers will run, which is started only when it is not the driver's own.

    Args:
        environ: PYSPARK_PYTHON names it; when unset, it is the driver's own.
        local: The workers run on this machine. Elsewhere a path that only they have is no mistake.

    Raises:
        InstallationError: it is not there, or of another minor version than the driver's.
    """
    named = environ.get("PYSPARK_PYTHON", "")
    program = shutil.which(named, path=environ.get("PATH")) if named else sys.executable
    if program is None and not local:
        return WorkerPython("", _OURS)
    if program is not None and _is_ours(program):
        return WorkerPython(program, _OURS, is_ours=True)
    theirs, *lines = (said_by([program, "-c", _LOOK, *_NAMES]) if program else "").splitlines() or [""]
    if program is not None and theirs.strip() == _OURS:
        return WorkerPython(program, _OURS, packages=_versions(lines))
    hint = f"unset PYSPARK_PYTHON, or set it to {sys.executable}"
    got = f"Python {theirs.strip()} in {program}" if theirs.strip() else f"no Python that runs ({named})"
    raise InstallationError("Python from", "PYSPARK_PYTHON", expected=f"Python {_OURS}", got=got, hint=hint)


def check_worker_python(environ: Mapping[str, str] = os.environ, *, local: bool = True) -> str:
    """The version of the Python that workers will run; see `find_worker_python`.

    Raises:
        InstallationError: it is not there, or of another minor version than the driver's.
    """
    return find_worker_python(environ, local=local).version


def check_worker_packages(python: WorkerPython) -> Checked:
    """Whether this Python has pandas and pyarrow as PySpark wants them, by what it has said already.

    Raises:
        InstallationError: one is absent, too old or too new.
    """
    _raise_unsuitable(python.program, python.packages)
    whose = ", the driver's own" if python.is_ours else ""
    said = [f"{name} {version}" for name, version in python.packages.items() if version != "?"]
    sentence = ", ".join([f"Python {python.version} in {python.program}{whose}", *said])
    return Checked("worker Python", "ok", sentence)


def check_worker_imports(python: WorkerPython) -> Checked:
    """The same by importing both in a process of that Python, which finds broken installations as well.

    Raises:
        InstallationError: one cannot be imported, is too old or too new.
    """
    said = said_by([python.program, "-c", _IMPORT, *_NAMES], timeout_seconds=_IMPORT_SECONDS)
    packages = {**dict.fromkeys(_NAMES, "! no answer"), **_versions(said.splitlines()[1:])}
    return check_worker_packages(WorkerPython(python.program, python.version, python.is_ours, packages))


def _versions(lines: list[str]) -> dict[str, str]:
    words = (line.partition(" ") for line in lines)
    return {name: rest.strip() for name, _, rest in words if name in _NAMES}


def _is_ours(program: str) -> bool:
    """True for the driver's own Python in its own environment, under whatever name.

    The pythons of two virtual environments are links to one file: which packages they have is told by the
    environment that the unresolved path lies in.
    """
    if Path(program).resolve() != Path(sys.executable).resolve():
        return False
    return _environment(program) == _environment(sys.executable)


def _environment(program: str) -> Path | None:
    folder = Path(os.path.abspath(program)).parent  # noqa: PTH100  resolve() would follow the link
    found = (place for place in (folder, folder.parent) if (place / "pyvenv.cfg").is_file())
    return next((place.resolve() for place in found), None)


def _raise_unsuitable(program: str, packages: Mapping[str, str]) -> None:
    least = _least_versions() if packages else {}
    wrong = list(_unsuitable(packages, least))
    if not wrong:
        return
    wants = " and ".join(_wanted(name, least) for name in packages)
    needs = " ".join(f"'{name}{_specifier(name, least)}'" for name, _ in wrong)
    raise InstallationError(
        "Python of the workers",
        program,
        expected=wants,
        got="; ".join(got for _, got in wrong),
        hint=f"run `{program} -m pip install {needs}`, or set PYSPARK_PYTHON to a Python that has them",
    )


def _unsuitable(packages: Mapping[str, str], least: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Name and what is there instead, of each package that will not do."""
    for name, version in packages.items():
        numbers = _numbers(version)
        if version == "-":
            yield name, f"no {name}"
        elif version.startswith("!"):
            yield name, f"{name} that cannot be imported ({version.lstrip('! ')})"
        elif numbers and (
            numbers < _numbers(least[name]) or (name in _BELOW and numbers >= _numbers(_BELOW[name]))
        ):
            yield name, f"{name} {version}"


def _wanted(name: str, least: Mapping[str, str]) -> str:
    below = f" and below {_BELOW[name]}" if name in _BELOW else ""
    return f"{name} from {least[name]}{below}"


def _specifier(name: str, least: Mapping[str, str]) -> str:
    return f">={least[name]}" + (f",<{_BELOW[name]}" if name in _BELOW else "")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _least_versions() -> dict[str, str]:
    """What the PySpark that an import would find asks for, read from its source and not imported."""
    text = pyspark_source("sql", "pandas", "utils.py") or ""
    return _LEAST | dict(re.findall(r'minimum_(pandas|pyarrow)_version = "([\d.]+)"', text))
