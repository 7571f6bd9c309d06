"""What a RAPIDS profile needs besides its files: values that follow from others, and what looks wrong."""

from __future__ import annotations

import math
import re
from pathlib import Path

from common.core.units import BYTE_UNITS, parse_bytes
from common.settings.profiles import Profile, Setting

PLUGIN = re.compile(r"rapids-4-spark_(?P<scala>[\d.]+)[-:](?P<version>\d[\d.]*\d)(?:[-:]cuda(?P<cuda>\d+))?")
PACKAGES = "spark.jars.packages"

_MIB, _GIB = BYTE_UNITS["m"], BYTE_UNITS["g"]
_PER_TASK, _PER_EXECUTOR = "spark.task.resource.gpu.amount", "spark.executor.resource.gpu.amount"
_SCRIPT = "spark.executor.resource.gpu.discoveryScript"
_CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
_RENAMED = {
    "spark.rapids.memory.gpu.pooling.enabled": "spark.rapids.memory.gpu.pool",
    "spark.rapids.memory.host.spillStorageSize": "spark.rapids.memory.host.offHeapLimit.size",
    "spark.rapids.sql.rowBasedUDF.enabled": "spark.rapids.sql.expression.cpuBridge.enabled",
}


def complete_rapids(profile: Profile, *, spark_version: str, folder: Path) -> Profile:
    """The profile with what follows from its other values and from Spark's version; given values stand.

    Args:
        profile: One whose accelerator is rapids.
        spark_version: As "4.1.3"; the shuffle manager's class carries it.
        folder: The folder of the profiles, with the discovery script that travels to YARN.

    >>> profile = complete_rapids(Profile("local+rapids", {}), spark_version="4.1.3", folder=Path())
    >>> profile.value("spark.shuffle.manager")
    'com.nvidia.spark.rapids.spark413.RapidsShuffleManager'
    """
    values = {**_by_version(spark_version), **_by_site(profile, folder=folder)}
    origin = f"computed for Spark {spark_version}"
    new = [Setting(key, value, "rapids", origin) for key, value in values.items() if not profile.value(key)]
    # Local mode has no resource scheduling: its tasks would wait for a GPU for ever.
    dropped = [_PER_TASK, _PER_EXECUTOR] if profile.site == "local" else []
    packages = profile.settings.get(PACKAGES)
    if packages and any(PLUGIN.search(item) for item in jars_of(profile)):
        # A jar of the user's own: two of them would stop the plugin.
        others = ",".join(item for item in listed(packages.value) if not PLUGIN.search(item))
        dropped += [] if others else [PACKAGES]
        new.append(Setting(PACKAGES, others, packages.layer, packages.origin))
    return profile.with_settings(new, without=dropped)


def _by_version(spark_version: str) -> dict[str, str]:
    numbers = version_numbers(spark_version)[:3]
    digits = "".join(map(str, numbers))
    values = {"spark.shuffle.manager": f"com.nvidia.spark.rapids.spark{digits}.RapidsShuffleManager"}
    if numbers >= (4, 2):
        # On by default there, and with either of them the plugin's shuffle gives way to Spark's.
        values |= {f"{_CHECKSUM}.enabled": "false", f"{_CHECKSUM}.enableFullRetryOnMismatch": "false"}
    return values


def _by_site(profile: Profile, *, folder: Path) -> dict[str, str]:
    if profile.site == "local":
        return {}
    values = {_PER_TASK: _share_of_a_task(profile.value("spark.executor.cores"))}
    if profile.site in ("yarn", "k8s"):
        values["spark.executor.memoryOverhead"] = f"{overhead_bytes(profile) // _MIB}m"
    if profile.site == "yarn" and not profile.value("spark.files") and not profile.value(_SCRIPT):
        script = folder.resolve() / "discovery" / "get_gpus.sh"
        values |= {"spark.files": str(script), _SCRIPT: f"./{script.name}"}
    return values


def _share_of_a_task(cores: str) -> str:
    """As many tasks on the GPU as there are cores: cut, not rounded, so that the last one fits too."""
    return f"{math.floor(10_000 / int(cores)) / 10_000:g}" if cores.isdigit() and int(cores) else "0.001"


def overhead_bytes(profile: Profile) -> int:
    """What a container needs beside the heap: the share of JVM and Python, pinned memory, 1 GiB pageable."""
    heap = parse_bytes(profile.value("spark.executor.memory", "1g"), default_unit="m")
    share = float(profile.value("spark.executor.memoryOverheadFactor", "0.1"))
    pinned = parse_bytes(profile.value("spark.rapids.memory.pinnedPool.size", "0"), default_unit="b")
    needed = max(384 * _MIB, int(heap * share)) + pinned + _GIB
    return math.ceil(needed / _MIB) * _MIB


def rapids_warnings(profile: Profile) -> list[str]:
    """What is set and is hardly what its author wants, a sentence each."""
    return [
        *(f"{old} is gone: {new} has taken its place" for old, new in _RENAMED.items() if profile.value(old)),
        *(_local_warnings(profile) if profile.site == "local" else _cluster_warnings(profile)),
    ]


def _local_warnings(profile: Profile) -> list[str]:
    keys = [key for key in (_PER_TASK, _PER_EXECUTOR) if profile.value(key)]
    return [f"{key} is left out: tasks of local mode would wait for a GPU for ever" for key in keys]


def _cluster_warnings(profile: Profile) -> list[str]:
    warnings = []
    cores, amount = profile.value("spark.executor.cores"), profile.value(_PER_TASK)
    if cores.isdigit() and amount and float(amount) * int(cores) > 1:
        tasks = max(int(1 / float(amount)), 1)
        text = f"{_PER_TASK} {amount} lets {tasks} of {cores} tasks of an executor run at a time"
        warnings.append(f"{text}; {_share_of_a_task(cores)} lets all of them share its GPU")
    if profile.value(_PER_EXECUTOR, "1") != "1":
        warnings.append(f"{_PER_EXECUTOR} {profile.value(_PER_EXECUTOR)}: the plugin uses 1")
    script = profile.value(_SCRIPT)
    if script and not script.startswith("/") and profile.site != "yarn":
        warnings.append(f"{_SCRIPT} {script} is relative: each executor looks for it where it was started")
    return warnings


def jars_of(profile: Profile) -> list[str]:
    """The jars that the driver is given by name."""
    class_path = profile.value("spark.driver.extraClassPath").split(":")
    return [item for item in [*listed(profile.value("spark.jars")), *class_path] if item]


def listed(text: str) -> list[str]:
    """The items of a list with commas.

    >>> listed("a, b,")
    ['a', 'b']
    """
    return [item.strip() for item in text.split(",") if item.strip()]


def version_numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare by.

    >>> version_numbers("4.1.3")
    (4, 1, 3)
    """
    return tuple(int(part) for part in re.findall(r"\d+", version))
