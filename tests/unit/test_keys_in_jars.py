"""The registry against the Spark that is installed: which keys its classes really know. No JVM.

A key is a text constant of a class file. Read are the jars that define or use settings; of Catalyst and SQL,
whose thousands of expressions and operators have none of their own, the folders that do.
"""

from __future__ import annotations

import re
import tomllib
import zipfile
from collections import defaultdict
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from common.settings import registry
from common.settings.keys import Key
from common.settings.registry import known_names, load_registry

SETTINGS = Path(registry.__file__).parent
JARS = (
    *("core", "common-utils", "common-utils-java", "network-common", "network-shuffle", "launcher"),
    *("sql-api", "catalyst", "sql", "hive", "kubernetes", "yarn"),
)
FOLDERS = {
    "catalyst": "org/apache/spark/sql/internal/",
    "sql": "org/apache/spark/sql/internal/",
}
# Tag 1, two bytes of length, the text itself: a constant of a class file that begins like a key.
CONSTANT = re.compile(rb"\x01(..)(spark\.[\w.\-]+)", re.DOTALL)

# Put together by Spark: the beginning of a key, the class that does it, and what its constant begins with.
PARTS = {
    "spark.shuffle.io.": ("org/apache/spark/network/util/TransportConf.class", "io."),
    "spark.executor.resource.gpu.": ("org/apache/spark/resource/ResourceUtils$.class", ""),
    "spark.task.resource.gpu.": ("org/apache/spark/resource/ResourceUtils$.class", ""),
    "spark.kubernetes.authenticate.driver.": ("org/apache/spark/deploy/k8s/Config$.class", "\x01."),
}
# Spark's own list of keys that it only warns of.
WARNED = {"org/apache/spark/SparkConf.class", "org/apache/spark/SparkConf$.class"}
REMOVED = {"org/apache/spark/sql/internal/SQLConf.class", "org/apache/spark/sql/internal/SQLConf$.class"}


def pyspark() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def jar(name: str) -> Path:
    (found,) = pyspark().glob(f"jars/{name}.jar")
    return found


@cache
def release() -> tuple[int, ...]:
    return tuple(int(part) for part in version("pyspark").split(".")[:3])


@cache
def places() -> dict[str, set[str]]:
    """Key to the classes it is a constant of."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in JARS:
        with zipfile.ZipFile(jar(f"spark-{name}_2.13-*")) as classes:
            for entry in classes.namelist():
                if entry.startswith(FOLDERS.get(name, "org/apache/spark/")) and entry.endswith(".class"):
                    for key in keys_of(classes.read(entry)):
                        found[key].add(entry)
    return found


def keys_of(class_file: bytes) -> set[str]:
    """The constants of a class file that begin like a key, whole."""
    if b"spark." not in class_file:
        return set()
    return {
        found[2][: int.from_bytes(found[1])].decode("ascii")
        for found in CONSTANT.finditer(class_file)
        if int.from_bytes(found[1]) <= len(found[2])
    }


@cache
def python_text() -> str:
    files = [*pyspark().glob("*.py"), *pyspark().glob("core/*.py"), *pyspark().glob("sql/*.py")]
    return "".join(file.read_text(encoding="utf-8") for file in files)


@cache
def hadoop_defaults() -> str:
    with zipfile.ZipFile(jar("hadoop-client-api-*")) as classes:
        return "".join(classes.read(name).decode() for name in ("core-default.xml", "mapred-default.xml"))


def is_known(key: str) -> bool:
    """Whether the installed Spark knows a key: its classes, its Python, its Hadoop, or put together."""
    if key in places() or f'"{key}"' in python_text():
        return True
    if key.startswith("spark.hadoop."):
        return f"<name>{key.removeprefix('spark.hadoop.')}</name>" in hadoop_defaults()
    return any(key.startswith(prefix) and is_part(prefix, key) for prefix in PARTS)


@cache
def class_file(entry: str) -> bytes:
    for name in ("core", "network-common", "kubernetes"):
        with zipfile.ZipFile(jar(f"spark-{name}_2.13-*")) as classes:
            if entry in classes.namelist():
                return classes.read(entry)
    raise AssertionError(entry)


def is_part(prefix: str, key: str) -> bool:
    entry, before = PARTS[prefix]
    return constant(before + key.removeprefix(prefix)) in class_file(entry)


def constant(text: str) -> bytes:
    return b"\x01" + len(text).to_bytes(2) + text.encode()


def of_spark(*statuses: str) -> list[Key]:
    return [key for key in load_registry().keys.values() if key.status in statuses and key.of is None]


def is_later(key: Key) -> bool:
    return key.since is not None and tuple(int(part) for part in key.since.split(".")) > release()


def test_the_reader_of_class_files_takes_whole_constants_only() -> None:
    content = (
        b"\x01\x00\x0bspark.a.b-c\x01\x00\x07spark.x\x08\x01\x00\x0cspark.\xc3\xa4\xc3\xa4\x01\x00\x05other"
    )
    assert keys_of(content) == {"spark.a.b-c", "spark.x"}


def test_keys_that_are_alive_or_deprecated_are_known_to_spark() -> None:
    keys = [key for key in of_spark("alive", "deprecated") if not is_later(key)]
    assert len(keys) > 400
    assert [key.name for key in keys if not is_known(key.name)] == []


def test_keys_of_a_later_release_are_not_yet_known() -> None:
    later = [key for key in of_spark("alive") if is_later(key)]
    assert later or release() >= (4, 3)
    assert [key.name for key in later if is_known(key.name)] == []


def test_dead_keys_are_unknown_or_only_warned_of() -> None:
    dead = of_spark("dead")
    assert {"spark.storage.memoryFraction", "spark.shuffle.consolidateFiles"} <= {key.name for key in dead}
    assert [key.name for key in dead if not places().get(key.name, set()) <= WARNED] == []
    # `not used any more` is Spark's own word for these.
    warned = {key.name for key in dead if key.name in places()}
    assert {"spark.shuffle.spill", "spark.rpc.numRetries", "spark.blacklist.enabled"} <= warned
    assert warned == {key.name for key in dead if key.why == "Spark 4 warns and ignores it."}


def test_fatal_keys_are_those_that_spark_removed_from_sql() -> None:
    fatal = of_spark("fatal")
    assert len(fatal) == 16
    assert [key.name for key in fatal if not places()[key.name] & REMOVED] == []
    assert [key.name for key in fatal if any("config/" in place for place in places()[key.name])] == []


def test_deprecated_keys_are_on_spark_s_lists_or_still_defined() -> None:
    elsewhere = [
        key.name
        for key in of_spark("deprecated")
        if not any(
            "SparkConf" in place or "SQLConf" in place or "onfig" in place for place in places()[key.name]
        )
    ]
    assert elsewhere == []


def test_the_guide_s_fatal_value_is_no_shuffle_manager_of_spark() -> None:
    code = class_file("org/apache/spark/shuffle/ShuffleManager$.class")
    manager = load_registry().find("spark.shuffle.manager")
    assert manager is not None
    assert [name for name in ("sort", "tungsten-sort", "hash") if constant(name) in code] == [
        *manager.choices
    ]


@pytest.mark.skipif(release()[:2] != (4, 1), reason="the list is of the locked release")
def test_the_names_beyond_the_registry_are_all_that_spark_defines() -> None:
    defining = ("SQLConf$.class", "config/package$.class", "config/UI$.class", "config/Python$.class")
    defined = {name for name, where in places().items() if any(each.endswith(defining) for each in where)}
    assert len(defined) > 1000
    missing = defined - known_names() - load_registry().keys.keys()
    # Beginnings of names, and what only Spark's own tests set.
    assert {
        name
        for name in missing
        if not re.search(r"[.]$|\btest", name)
        and not any(other.startswith(f"{name}.") for other in defined)
        and name != "spark.plugins.defaultList"
    } == set()


@pytest.mark.skipif(release()[:2] != (4, 1), reason="the list is of the locked release")
def test_the_names_beyond_the_registry_are_spark_s() -> None:
    tables = tomllib.loads((SETTINGS / "spark_names.toml").read_text(encoding="utf-8"))
    unread = (
        "spark.connect.",
        "spark.sql.connect.",
        "spark.streaming.",
        "spark.graphx.",
        "spark.sql.catalog.",
    )
    unknown = {name for name in tables["spark_4_1"] if not is_known(name) and not name.startswith(unread)}
    # In classes that are not read here: the shell, code generation, Mesos' remains, parts of Catalyst.
    assert unknown == {
        "spark.kubernetes.authenticate.executor.serviceAccountName",
        "spark.memory.debugFill",
        "spark.repl.classdir",
        "spark.sql.CodeGenerator.validParamLength",
        "spark.sql.join.forceApplyShuffledHashJoin",
        "spark.submit.appName",
    }
