"""The registry of Spark's settings: its form, how values are read, and which names are typing errors."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from common.core.errors import ParameterError
from common.settings.findings import Finding
from common.settings.keys import Key
from common.settings.profiles import parse_properties
from common.settings.registry import known_names, load_registry, too_late

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "common" / "settings"
CONF = sorted((ROOT / "conf").glob("*.conf"))

# Development, resources, skew, shuffle: the guide has 10, 7, 8 and 8 of them.
GUIDELINES = {
    f"{letter}{number}"
    for letter, count in (("D", 10), ("R", 7), ("K", 8), ("H", 8))
    for number in range(1, count + 1)
}
KIB, MIB, GIB = 1024, 1024**2, 1024**3

# What the tuning guide names, and what became of it.
GUIDE = {
    "spark.executor.instances": ("R1", "alive"),
    "spark.dynamicAllocation.enabled": ("R1", "alive"),
    "spark.dynamicAllocation.maxExecutors": ("R1", "alive"),
    "spark.executor.memory": ("R2", "alive"),
    "spark.executor.memoryOverheadFactor": ("R2", "alive"),
    "spark.executor.pyspark.memory": ("R2", "alive"),
    "spark.executor.cores": ("R3", "alive"),
    "spark.driver.memory": ("R4", "alive"),
    "spark.driver.maxResultSize": ("R4", "alive"),
    "spark.default.parallelism": ("R5", "alive"),
    "spark.sql.shuffle.partitions": ("R5", "alive"),
    "spark.storage.memoryFraction": ("R6", "dead"),
    "spark.memory.fraction": ("R6", "alive"),
    "spark.shuffle.memoryFraction": ("R7", "dead"),
    "spark.memory.offHeap.size": ("R7", "alive"),
    "spark.shuffle.file.buffer": ("H1", "alive"),
    "spark.reducer.maxSizeInFlight": ("H2", "alive"),
    "spark.shuffle.io.maxRetries": ("H3", "alive"),
    "spark.shuffle.io.retryWait": ("H4", "alive"),
    "spark.shuffle.manager": ("H6", "alive"),
    "spark.shuffle.sort.bypassMergeThreshold": ("H7", "alive"),
    "spark.shuffle.consolidateFiles": ("H8", "dead"),
    "spark.shuffle.push.enabled": ("H8", "alive"),
    "spark.rdd.compress": ("D3", "alive"),
    "spark.serializer": ("D8", "alive"),
    "spark.kryo.registrator": ("D8", "alive"),
    "spark.locality.wait": ("D10", "alive"),
    "spark.sql.adaptive.enabled": ("K3", "alive"),
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": ("K3", "alive"),
    "spark.sql.shuffle.spreadNullJoinKeys.enabled": ("K3", "alive"),
}


def check(key: str, value: str) -> Finding:
    found = load_registry().check(key, value, origin="x.conf:1")
    assert found is not None, f"{key} = {value} passes"
    return found


def key(name: str) -> Key:
    found = load_registry().find(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["keys.toml", "spark_names.toml"])
def test_the_files_are_sorted(name: str) -> None:
    text = (SETTINGS / name).read_text(encoding="utf-8")
    for section in re.split(r"^(?:\[|spark_4)", text, flags=re.MULTILINE)[1:]:
        names = re.findall(r'^\s*"(spark\.[^"]+)"(?: = |,)', section, re.MULTILINE)
        assert names
        assert names == sorted(set(names))


def test_the_names_beyond_the_registry_are_not_in_it() -> None:
    assert known_names().isdisjoint(load_registry().keys)
    tables = tomllib.loads((SETTINGS / "spark_names.toml").read_text(encoding="utf-8"))
    assert set(tables["spark_4_1"]).isdisjoint(tables["spark_4_3"])


def test_every_key_says_what_it_is() -> None:
    wrong = [
        each.name
        for each in load_registry().keys.values()
        if not each.why.endswith((".", "…"))
        or (each.status != "alive" and not each.replaced_by)
        or (each.status == "fatal" and each.default is None)
        or (each.type in ("bytes", "heap", "seconds")) != (each.unit is not None)
        or (each.type == "choice") != bool(each.choices)
        or (each.pattern is not None) != bool(each.form)
        or not set(each.guidelines) <= GUIDELINES
    ]
    assert wrong == []


def test_every_guideline_about_settings_has_keys() -> None:
    used = {rule for each in load_registry().keys.values() for rule in each.guidelines}
    assert used >= {*(f"R{n}" for n in range(1, 8)), *(f"H{n}" for n in range(1, 9)), "K3", "D3", "D8", "D10"}


@pytest.mark.parametrize(("name", "rule", "status"), [(name, *rest) for name, rest in GUIDE.items()])
def test_the_keys_of_the_guide(name: str, rule: str, status: str) -> None:
    assert key(name).status == status
    assert rule in key(name).guidelines


def test_defaults_and_limits_are_values_that_pass() -> None:
    for each in load_registry().keys.values():
        if each.default is not None and each.status in ("alive", "deprecated"):
            each.read(each.default)
        for limit in (each.minimum, each.maximum):
            if limit is not None:
                each.read(str(limit))
        for value in each.advice.values if each.advice else ():
            each.read(value)
            assert not each.is_unwise(value)


def test_spark_s_own_defaults_need_no_advice() -> None:
    # Two defaults are against the guide: it says so itself, and the suite sets them otherwise.
    known = {
        "spark.sql.adaptive.coalescePartitions.parallelismFirst",
        "spark.sql.execution.arrow.pyspark.enabled",
    }
    unwise = {
        each.name
        for each in load_registry().keys.values()
        if each.status == "alive" and each.default is not None and each.is_unwise(each.default)
    }
    assert unwise == known


@pytest.mark.parametrize("path", CONF, ids=[path.name for path in CONF])
def test_the_suite_s_own_profiles_set_living_keys(path: Path) -> None:
    registry = load_registry()
    for setting in parse_properties(path.read_text(encoding="utf-8"), layer=path.stem, origin=path.name):
        known = registry.find(setting.key)
        assert known is not None, f"{setting.origin}: {setting.key} is not in keys.toml"
        assert known.status == "alive", setting
        assert registry.check(setting.key, setting.value, origin=setting.origin) is None


# By Spark's documentation: the unit of a bare number; 1 TiB = 2^40 bytes, 1 d = 86,400 s.
@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("spark.executor.memory", "4g", 4 * GIB),
        ("spark.driver.memory", "512M", 512 * MIB),
        ("spark.executor.memoryOverhead", "384", 384 * MIB),
        ("spark.executor.pyspark.memory", "1TB", 2**40),
        ("spark.shuffle.file.buffer", "64", 64 * KIB),
        ("spark.shuffle.file.buffer", "64k", 64 * KIB),
        ("spark.reducer.maxSizeInFlight", "96", 96 * MIB),
        ("spark.memory.offHeap.size", "2048", 2048),
        ("spark.sql.autoBroadcastJoinThreshold", "-1", -1),
        ("spark.sql.autoBroadcastJoinThreshold", "10MB", 10 * MIB),
        ("spark.kryoserializer.buffer", "64", 64 * KIB),
        ("spark.network.timeout", "120", 120.0),
        ("spark.network.timeout", "2min", 120.0),
        ("spark.locality.wait", "3000", 3.0),
        ("spark.locality.wait", "3s", 3.0),
        ("spark.executor.heartbeatInterval", "10000", 10.0),
        ("spark.shuffle.io.retryWait", "5", 5.0),
        ("spark.cleaner.periodicGC.interval", "30min", 1800.0),
        ("spark.sql.broadcastTimeout", "300", 300.0),
        ("spark.barrier.sync.timeout", "1d", 86400.0),
        ("spark.memory.fraction", "0.6", 0.6),
        ("spark.memory.storageFraction", ".5", 0.5),
        ("spark.speculation.multiplier", "3", 3.0),
        ("spark.sql.shuffle.partitions", "200", 200),
        ("spark.eventLog.enabled", "TRUE", True),
        ("spark.io.compression.codec", "ZSTD", "zstd"),
        ("spark.shuffle.manager", "org.example.MyShuffle", "org.example.MyShuffle"),
        ("spark.master", "local[2, 3]", "local[2, 3]"),
        ("spark.master", "k8s://https://host:443", "k8s://https://host:443"),
    ],
)
def test_values_are_read_as_spark_reads_them(name: str, text: str, value: object) -> None:
    assert key(name).read(text) == value


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("spark.executor.memory", "4.5g", "write 4608m"),
        ("spark.executor.memory", "4gg", "whole number"),
        ("spark.executor.memory", "400m", "450m or more"),
        ("spark.driver.memory", "2048", "as Java reads it.*write 2g"),
        ("spark.driver.memory", "2gb", "as Java reads it.*write 2g"),
        ("spark.executor.cores", "0", "1 or more"),
        ("spark.executor.cores", "four", "whole number"),
        ("spark.executor.cores", "2.0", "whole number"),
        ("spark.kryoserializer.buffer.max", "2g", "1m to 2047m"),
        ("spark.rpc.message.maxSize", "4096", "1 to 2047"),
        ("spark.memory.fraction", "60%", "write 0.6"),
        ("spark.memory.fraction", "1.2", "0 to 1"),
        ("spark.locality.wait", "3 seconds", "with a unit of"),
        ("spark.eventLog.enabled", "yes", "true or false.*write true"),
        ("spark.shuffle.manager", "hash", "one of sort, tungsten-sort or the name of a class"),
        ("spark.io.compression.codec", "zsdt", "did you mean `zstd`"),
        ("spark.submit.deployMode", "Cluster", "one of client, cluster"),
        ("spark.sql.parquet.compression.codec", "gz", "one of none, uncompressed, snappy"),
        ("spark.master", "mesos://host:5050", "Mesos and yarn-client are gone"),
        ("spark.master", "yarn-client", "Mesos and yarn-client are gone"),
        ("spark.executor.extraJavaOptions", "-XX:+UseG1GC -Xmx4g", "options without -Xmx"),
        ("spark.executor.extraJavaOptions", "-Dspark.a=1", "options without -Xmx and -Dspark"),
        ("spark.ui.port", "70000", "at most 65535"),
        ("spark.comet.expression.Sin.enabled", "off", "true or false.*write false"),
        ("spark.sql.shuffle.partitions", "-1", "1 or more"),
    ],
)
def test_values_that_spark_refuses(name: str, text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        key(name).read(text)
    assert check(name, text).severity == "error"


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("spark.locality.wait", "60s", "D10"),
        ("spark.locality.wait.process", "60s", "D10"),
        ("spark.sql.adaptive.enabled", "false", "K3"),
        ("spark.sql.adaptive.coalescePartitions.parallelismFirst", "true", "R5"),
        ("spark.shuffle.sort.bypassMergeThreshold", "4000", "H7"),
        ("spark.shuffle.file.buffer", "8m", "H1"),
        ("spark.reducer.maxSizeInFlight", "1g", "H2"),
        ("spark.sql.autoBroadcastJoinThreshold", "2g", "K5"),
        ("spark.sql.defaultCacheStorageLevel", "DISK_ONLY", "D3"),
        ("spark.executor.memory", "64g", "R2"),
        ("spark.comet.operator.WindowExec.allowIncompatible", "true", ""),
    ],
)
def test_values_against_the_guide_are_warnings(name: str, text: str, rule: str) -> None:
    found = check(name, text)
    assert found.severity == "warning"
    assert found.key == name
    assert rule in " ".join(found.guidelines)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.locality.wait", "0s"),
        ("spark.shuffle.sort.bypassMergeThreshold", "400"),
        ("spark.shuffle.file.buffer", "64k"),
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.serializer", "org.apache.spark.serializer.KryoSerializer"),
        ("spark.executor.memory", "${spark.driver.memory}"),
        ("spark.hadoop.fs.s3a.bucket.raw.endpoint", "anything"),
        ("spark.executorEnv.LD_LIBRARY_PATH", "lib"),
        ("spark.sql.catalog.lake", "org.example.Catalog"),
        ("spark.kubernetes.namespce", "in a family nothing is a typing error"),
        ("spark.comet.exec.somethingNew.enabled", "true"),
        ("spark.comet.expression.Sin.enabled", "false"),
        ("spark.sql.adaptive.customCostEvaluatorClass", "Spark's own, but not in the registry"),
        ("spark.databricks.delta.retentionDurationCheck.enabled", "another's"),
        ("spark.mycompany.team", "x"),
        ("spark.shuffle.io.maxRetry", "three letters off: no certainty"),
        ("my.own.key", "x"),
    ],
)
def test_values_and_names_that_pass(name: str, value: str) -> None:
    assert load_registry().check(name, value) is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("spark.executor.memroy", "spark.executor.memory"),
        ("spark.executor.core", "spark.executor.cores"),
        ("spark.sql.shuffle.partition", "spark.sql.shuffle.partitions"),
        ("spark.sql.Shuffle.Partitions", "spark.sql.shuffle.partitions"),
        ("spark.sql.adaptive.enable", "spark.sql.adaptive.enabled"),
        ("spark.dynamicAllocation.maxExecutor", "spark.dynamicAllocation.maxExecutors"),
        ("spark.ui.retainedDeadExecutor", "spark.ui.retainedDeadExecutors"),
    ],
)
def test_a_typing_error_is_an_error_that_names_what_was_meant(name: str, meant: str) -> None:
    found = check(name, "1")
    assert found.severity == "error"
    assert found.hint is not None
    assert meant in found.hint


def test_a_part_left_out_is_a_warning() -> None:
    found = check("spark.shuffle.partitions", "400")
    assert (found.severity, found.hint) == ("warning", "did you mean spark.sql.shuffle.partitions")


def test_dead_keys_are_warnings_that_name_what_replaces_them() -> None:
    found = check("spark.shuffle.memoryFraction", "0.3")
    assert (found.severity, found.guidelines) == ("warning", ("R7", "H5"))
    assert "ignores" in found.sentence
    assert "spark.memory.fraction" in str(found.hint)
    assert check("spark.mesos.executor.home", "x").severity == "warning"


def test_deprecated_keys_are_warnings_and_their_values_are_checked() -> None:
    found = check("spark.yarn.executor.memoryOverhead", "2048")
    assert (found.severity, found.hint) == ("warning", "instead: spark.executor.memoryOverhead")
    assert check("spark.yarn.executor.memoryOverhead", "2,048").severity == "error"


def test_removed_sql_keys_are_fatal_but_at_their_old_default() -> None:
    name = "spark.sql.legacy.parquet.int96RebaseModeInWrite"
    assert load_registry().check(name, "CORRECTED") is None
    found = check(name, "LEGACY")
    assert (found.severity, found.hint) == ("error", "instead: spark.sql.parquet.int96RebaseModeInWrite")


def test_keys_of_later_releases_are_told() -> None:
    found = check("spark.sql.shuffle.spreadNullJoinKeys.enabled", "true")
    assert (found.severity, found.sentence) == ("info", "new in Spark 4.3.0: older releases ignore it")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("spark.driver.memory", "deploy"),
        ("spark.plugins", "deploy"),
        ("spark.hadoop.fs.s3a.anything", "deploy"),
        ("spark.sql.warehouse.dir", "static"),
        ("spark.sql.extensions", "static"),
        ("spark.sql.shuffle.partitions", "runtime"),
        ("spark.rapids.sql.enabled", "runtime"),
        ("spark.rapids.sql.mode", "deploy"),
        ("spark.mycompany.team", None),
    ],
)
def test_when_a_setting_must_be_there(name: str, kind: str | None) -> None:
    assert load_registry().kind(name) == kind
    late = too_late(name, "x", origin="--conf")
    assert (late is not None) == (kind in ("deploy", "static"))


def test_secrets_are_masked_also_when_their_key_is_misspelt() -> None:
    assert "hunter2" not in check("spark.authenticate.secert", "hunter2").line()
    late = too_late("spark.authenticate.secret", "hunter2", origin="--conf")
    assert late is not None
    assert "hunter2" not in late.line()
