"""Files that hide a library: Python looks into the folder it starts in, or the script's own, first.

Spark starts its Python workers by `python -m pyspark.daemon` in the driver's current folder, so a `random.py`
there takes the place of Python's own, on the workers only; beside a job file it does so on the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder, all_suffixes
from pathlib import Path

from common.core.errors import InstallationError
from common.engine.checked import Checked

# What a worker imports, by itself or with pandas and pyarrow: seen in a process that imports
# pyspark.daemon, pyspark.worker, both packages and what they load when first used; Python 3.11 to 3.13.
_IMPORTED = """
__future__ array ast base64 binascii bisect bz2 cProfile calendar cmath collections concurrent contextlib
contextvars copy copyreg csv ctypes dataclasses datetime decimal dis enum fcntl filecmp fnmatch
functools glob grp gzip hashlib heapq hmac importlib inspect ipaddress json keyword linecache locale
logging lzma math mmap numbers opcode operator pathlib pickle pkgutil platform pprint profile pstats pydoc
queue random re reprlib resource secrets select selectors shlex shutil signal socket socketserver ssl
string struct subprocess sysconfig tarfile tempfile textwrap threading token tokenize traceback types
typing unicodedata urllib uuid warnings weakref zipfile zlib zoneinfo
dateutil numpy pandas py4j pyarrow pyspark pytz
"""
BREAKING = frozenset(_IMPORTED.split())
# What else the driver needs, and what else a user's own functions may import.
_OUR_PACKAGES = frozenset({"cyclopts", "filelock", "findspark", "platformdirs", "pydantic", "rich"})
_SHOWN = 5


@dataclass(frozen=True)
class Shadow:
    """A file or package that is imported in the place of another.

    Attributes:
        path: The file, or the folder of the package.
        module: The name that it takes.
        breaks: Spark's workers import this module: they end, or answer with another's functions.
    """

    path: Path
    module: str
    breaks: bool

    def __str__(self) -> str:
        whose = f"Python's own {self.module}" if self.module in sys.stdlib_module_names else self.module
        return f"{self.path.name}{'/' if self.path.is_dir() else ''} (hides {whose})"


def find_shadows(folder: Path) -> list[Shadow]:
    """The modules of this folder that hide one of Python's own or of a package that the suite needs.

    A folder without `__init__.py` hides nothing, nor does a file of a module that is built into Python; and
    what is found nowhere else on the path is the library itself.

    Raises:
        OSError: the folder cannot be listed.
    """
    wanted = sys.stdlib_module_names | BREAKING | _OUR_PACKAGES
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        module, dot, suffix = path.name.partition(".")
        if module in wanted and _is_module(path, dot + suffix):
            found.setdefault(module, path)  # a package comes before a file, in this order and in Python's
    return [
        Shadow(path, module, module in BREAKING)
        for module, path in sorted(found.items())
        if _is_elsewhere(module, folder)
    ]


def check_current_folder(folder: Path | None, environ: Mapping[str, str]) -> Checked:
    """Whether workers that start in this folder get the libraries they import.

    Args:
        folder: The current folder; None when it is gone.
        environ: PYTHONSAFEPATH has workers leave the folder out.

    Raises:
        InstallationError: it is gone, cannot be listed, or holds what a worker would import by mistake.
    """
    name = "current folder"
    if folder is None:
        hint = "change to a folder that exists"
        got = "one that has been removed, in which Java does not start"
        raise InstallationError(name, ".", expected="a folder", got=got, hint=hint)
    if environ.get("PYTHONSAFEPATH"):
        return Checked(name, "ok", f"left out by workers, as PYTHONSAFEPATH is set ({folder})")
    try:
        shadows = find_shadows(folder)
    except PermissionError:  # workers cannot look into it either
        return Checked(name, "ok", f"may not be listed ({folder})")
    breaking = [shadow for shadow in shadows if shadow.breaks]
    hint = "rename it, start from another folder, or export PYTHONSAFEPATH=1, with which workers leave it out"
    if breaking:
        expected = "no file that Spark's Python workers import in the place of a library"
        raise InstallationError(name, str(folder), expected=expected, got=_listed(breaking), hint=hint)
    if shadows:
        sentence = f"functions on workers would import {_listed(shadows)} ({folder})"
        return Checked(name, "warning", sentence, hint)
    return Checked(name, "ok", f"hides no library ({folder})")


def check_beside_job(folder: Path) -> None:
    """Whether a job file in this folder, which then comes first on the driver's path, gets its libraries.

    Raises:
        InstallationError: the folder holds what Spark or the suite would import by mistake.
    """
    try:
        shadows = find_shadows(folder)
    except OSError:  # then Python finds nothing in it either
        return
    breaking = [shadow for shadow in shadows if shadow.breaks or shadow.module in _OUR_PACKAGES]
    if breaking:
        expected = "no file that is imported in the place of a library"
        hint = "rename it, or move the job to a folder of its own"
        raise InstallationError(
            "folder of the job", str(folder), expected=expected, got=_listed(breaking), hint=hint
        )


def _listed(shadows: list[Shadow]) -> str:
    more = f" and {len(shadows) - _SHOWN} more" if len(shadows) > _SHOWN else ""
    return ", ".join(map(str, shadows[:_SHOWN])) + more


def _is_module(path: Path, suffix: str) -> bool:
    if not suffix:
        return any((path / f"__init__{each}").is_file() for each in all_suffixes())
    return suffix in all_suffixes() and path.is_file()


def _is_elsewhere(module: str, folder: Path) -> bool:
    """True when Python would find the module without this folder, and looks into the folder before that."""
    if BuiltinImporter.find_spec(module) or FrozenImporter.find_spec(module):
        return False
    here = folder.resolve()
    others = [place for place in sys.path if Path(place).resolve() != here]
    spec = PathFinder.find_spec(module, others)
    return spec is not None and spec.origin is not None
