"""RAPIDS before a session starts: what is missing for it, as far as this machine can tell.

A GPU's absence is no error: the run goes on on the CPU, with the same answer, and says so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.engine.java import check_spark_home, spark_home
from common.engine.programs import ask
from common.settings.profiles import Profile
from common.settings.rapids import (
    PACKAGES,
    PLUGIN,
    complete_rapids,
    jars_of,
    listed,
    rapids_warnings,
    version_numbers,
)

# The Spark releases that these releases of the plugin know. It compares the whole version, not its beginning.
_SPARK_RELEASES = ("4.1.1", "4.1.2", "4.1.3", "4.2.0")
_PLUGIN_RELEASES = ("26.08.0", "26.08.1", "26.10.0")
_SUGGESTED_PLUGIN, _SUGGESTED_SPARK = "26.08.1", "4.1.3"
_DRIVER_OF_CUDA = {"12": 525, "13": 580}
_VOLTA = 7.0  # the oldest compute capability that the plugin knows


@dataclass(frozen=True)
class Missing:
    """One thing that RAPIDS needs and does not have.

    Attributes:
        what: "jar", "Spark version", "Scala version", "driver" or "GPU".
        expected: What would do.
        got: What is there.
        hint: How to get it.
    """

    what: str
    expected: str
    got: str
    hint: str

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, got {self.got} ({self.hint})"


@dataclass(frozen=True)
class Gpus:
    """What nvidia-smi says of this machine.

    Attributes:
        found: Name and compute capability of each GPU that may be used.
        driver: The driver's version, "580.95.05"; empty when none answers.
        problem: Why there is no GPU, or no answer.
    """

    found: tuple[tuple[str, float], ...] = ()
    driver: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Readiness:
    """A RAPIDS profile that was looked at.

    Attributes:
        profile: With all that follows from its values; of use when nothing is missing.
        missing: What keeps the run on the CPU.
        warnings: What is set and is hardly what its author wants.
    """

    profile: Profile
    missing: tuple[Missing, ...]
    warnings: tuple[str, ...]


def prepare_rapids(
    profile: Profile, *, folder: Path, environ: Mapping[str, str], deploy_mode: str = "client"
) -> Readiness:
    """Complete a RAPIDS profile for the Spark that will run, and check it against this machine.

    Args:
        profile: One whose accelerator is rapids.
        folder: The folder of the profiles.
        environ: SPARK_HOME, PATH and CUDA_VISIBLE_DEVICES are looked at.
        deploy_mode: In cluster mode the driver's files are elsewhere.

    Raises:
        InstallationError: no Spark, or one of two versions.
    """
    spark_version = check_spark_home(environ)
    complete = complete_rapids(profile, spark_version=spark_version, folder=folder)
    jars = spark_home(environ) / "jars"
    scala = next((re.search(r"-(\d+\.\d+)\.", path.name) for path in jars.glob("scala-library-*.jar")), None)
    missing = check_rapids(
        complete,
        spark_version=spark_version,
        scala_version=scala[1] if scala else "2.13",
        gpus=look_for_gpus(environ) if profile.site == "local" else None,
        deploy_mode=deploy_mode,
        jars_folder=jars,
    )
    return Readiness(complete, tuple(missing), tuple(rapids_warnings(profile)))


def check_rapids(
    profile: Profile,
    *,
    spark_version: str,
    scala_version: str,
    gpus: Gpus | None,
    deploy_mode: str = "client",
    jars_folder: Path | None = None,
) -> list[Missing]:
    """What RAPIDS needs and does not have.

    Args:
        profile: One whose accelerator is rapids.
        spark_version: Of the Spark that will run.
        scala_version: Its Scala's, as "2.13".
        gpus: What `look_for_gpus` found; None where the executors are elsewhere, and their GPUs with them.
        deploy_mode: In cluster mode the driver's files are elsewhere too.
        jars_folder: Spark's own jars, among which the plugin may be.
    """
    plugin = _plugin_of(profile, here=deploy_mode == "client", jars_folder=jars_folder)
    missing = _of_plugin(plugin, spark_version, scala_version, where=deploy_mode)
    return missing + _of_gpus(gpus, cuda=(plugin["cuda"] if plugin else None) or "12")


def _of_plugin(
    plugin: re.Match[str] | None, spark_version: str, scala_version: str, *, where: str
) -> list[Missing]:
    name = f"rapids-4-spark_{scala_version}"
    if plugin is None:
        hint = f"--conf {PACKAGES}=com.nvidia:{name}:{_SUGGESTED_PLUGIN}, or --conf spark.jars=FILE"
        got = "none on this machine" if where == "client" else "none in the settings"
        return [Missing("jar", name, got, hint)]
    missing = []
    if plugin["scala"] != scala_version:
        missing.append(Missing("Scala version", plugin["scala"], scala_version, f"the jar {name} fits"))
    if plugin["version"] in _PLUGIN_RELEASES and spark_version not in _SPARK_RELEASES:
        expected = f"one of {', '.join(_SPARK_RELEASES)} for the plugin {plugin['version']}"
        hint = f"pip install pyspark=={_SUGGESTED_SPARK}"
        missing.append(Missing("Spark version", expected, spark_version, hint))
    return missing


def _plugin_of(profile: Profile, *, here: bool, jars_folder: Path | None) -> re.Match[str] | None:
    """The plugin that the driver will find, by its name; a file that is expected here has to be here."""
    named = [item for item in jars_of(profile) if not here or _is_there(item)]
    own = [path.name for path in jars_folder.glob("rapids-4-spark_*.jar")] if jars_folder else []
    found = (PLUGIN.search(item) for item in [*named, *listed(profile.value(PACKAGES)), *own])
    return next(filter(None, found), None)


def _is_there(jar: str) -> bool:
    scheme, colon, rest = jar.partition(":")
    if not colon:
        return Path(jar).is_file()
    if scheme not in ("file", "local"):
        return True  # another file system's, which Spark fetches from
    return Path("/" + rest.lstrip("/")).is_file()


def _of_gpus(gpus: Gpus | None, *, cuda: str) -> list[Missing]:
    if gpus is None:
        return []
    needed = _DRIVER_OF_CUDA.get(cuda, 0)
    hint = "install NVIDIA's driver, or leave +rapids out"
    if not gpus.driver:
        return [Missing("driver", f"NVIDIA's, {needed} or newer", gpus.problem or "none", hint)]
    missing = []
    if version_numbers(gpus.driver)[0] < needed:
        missing.append(Missing("driver", f"{needed} or newer for CUDA {cuda}", gpus.driver, hint))
    if not any(capability >= _VOLTA for _, capability in gpus.found):
        got = ", ".join(name for name, _ in gpus.found) or gpus.problem or "none"
        missing.append(Missing("GPU", "one of Volta's generation or newer", got, "leave +rapids out"))
    return missing


def look_for_gpus(environ: Mapping[str, str], *, timeout_seconds: float = 10) -> Gpus:
    """Ask nvidia-smi for the GPUs of this machine that CUDA_VISIBLE_DEVICES leaves visible."""
    program = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if program is None:
        return Gpus(problem="no nvidia-smi on PATH")
    query = [program, "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    try:
        asked = ask(query, timeout_seconds=timeout_seconds)
    except (OSError, subprocess.SubprocessError) as error:
        return Gpus(problem=f"an nvidia-smi that does not answer ({type(error).__name__})")
    if asked.returncode:
        said = (asked.stdout + asked.stderr).strip().splitlines() or ["no word"]
        return Gpus(problem=f"from nvidia-smi: {said[0]}")
    return parse_gpus(asked.stdout, hidden=environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"))


def parse_gpus(text: str, *, hidden: bool = False) -> Gpus:
    """The GPUs of nvidia-smi's name, driver_version and compute_cap as CSV.

    >>> parse_gpus("Tesla T4, 550.54.15, 7.5")
    Gpus(found=(('Tesla T4', 7.5),), driver='550.54.15', problem='')
    """
    lines = re.finditer(r"^\s*(.+?),\s*(\d[\d.]*),\s*(\d+(?:\.\d+)?)\s*$", text, re.MULTILINE)
    rows = [line.groups() for line in lines]
    driver = rows[0][1] if rows else ""
    if hidden:
        return Gpus((), driver, "none visible, CUDA_VISIBLE_DEVICES hides them")
    found = tuple((name, float(capability)) for name, _, capability in rows)
    return Gpus(found, driver, "" if found else "no GPU in nvidia-smi's list")


def cpu_sentence(missing: Sequence[Missing]) -> str:
    """The sentence for a run that goes on without RAPIDS.

    >>> cpu_sentence([Missing("GPU", "one", "none", "leave +rapids out")])
    'RAPIDS is off, the CPU gives the same answer: GPU: expected one, got none (leave +rapids out)'
    """
    return f"RAPIDS is off, the CPU gives the same answer: {'; '.join(map(str, missing))}"
