"""Whole configurations: settings that go together, files of anyone's, what `saltpan conf show` prints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from common.core.errors import ConfigurationError, SeveralErrors
from common.settings.accelerator_rules import COMET, COMET_SHUFFLE, RAPIDS
from common.settings.conf_audit import audit_text, check_profile, render_profile
from common.settings.findings import Finding, raise_errors
from common.settings.profiles import Profile, Setting, load_profile
from common.settings.properties import entries

CONF = Path(__file__).resolve().parents[2] / "conf"
SITES = sorted(
    {path.stem for path in CONF.glob("*.conf") if "@" not in path.stem} - {"base", "comet", "rapids"}
)

KRYO = "org.apache.spark.serializer.KryoSerializer"
REGISTRATOR = "com.nvidia.spark.rapids.GpuKryoRegistrator"
GPU = "spark.executor.resource.gpu.amount"
SHARE = "spark.task.resource.gpu.amount"


def profile(settings: Mapping[str, str], *, layer: str = "flag", origin: str = "--conf") -> Profile:
    return Profile("local", {key: Setting(key, value, layer, origin) for key, value in settings.items()})


def findings(settings: Mapping[str, str], *, late: bool = False) -> list[Finding]:
    return check_profile(profile(settings), late=late)


# (settings, severity, key, words of the sentence or the hint)
TOGETHER = [
    ({"spark.memory.offHeap.enabled": "true"}, "error", "spark.memory.offHeap.enabled", "size above 0"),
    ({"spark.memory.offHeap.size": "2g"}, "warning", "spark.memory.offHeap.size", "no effect while"),
    (
        {"spark.driver.memory": "1g", "spark.driver.maxResultSize": "2g"},
        "warning",
        "spark.driver.maxResultSize",
        "more than spark.driver.memory (1 GiB)",
    ),
    (
        {"spark.sql.autoBroadcastJoinThreshold": "9g"},
        "error",
        "spark.sql.autoBroadcastJoinThreshold",
        "at most 8 GiB",
    ),
    # 60 retries x 60 s = 3600 s; 60 x the default 5 s = 300 s.
    (
        {"spark.shuffle.io.maxRetries": "60", "spark.shuffle.io.retryWait": "60s"},
        "warning",
        "spark.shuffle.io.maxRetries",
        "hide a dead node for 1 h",
    ),
    ({"spark.shuffle.io.maxRetries": "60"}, "warning", "spark.shuffle.io.maxRetries", "for 5 min"),
    ({"spark.shuffle.io.retryWait": "60s"}, "warning", "spark.shuffle.io.retryWait", "for 3 min"),
    ({"spark.executor.cores": "8"}, "warning", "spark.executor.cores", "8 tasks share one heap"),
    (
        {"spark.executor.cores": "4", "spark.cores.max": "10"},
        "warning",
        "spark.cores.max",
        "2 of its cores stay idle",
    ),
    (
        {"spark.executor.memoryOverhead": "1g", "spark.executor.memoryOverheadFactor": "0.2"},
        "info",
        "spark.executor.memoryOverheadFactor",
        "no effect beside spark.executor.memoryOverhead",
    ),
    ({"spark.default.parallelism": "1000"}, "info", "spark.default.parallelism", "RDDs only"),
    (
        {"spark.sql.adaptive.enabled": "false", "spark.sql.adaptive.forceOptimizeSkewedJoin": "true"},
        "info",
        "spark.sql.adaptive.forceOptimizeSkewedJoin",
        "no effect while spark.sql.adaptive.enabled is false",
    ),
    (
        {"spark.sql.adaptive.advisoryPartitionSizeInBytes": "512m"},
        "warning",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes",
        "too small to split",
    ),
    (
        {"spark.dynamicAllocation.enabled": "true"},
        "warning",
        "spark.dynamicAllocation.maxExecutors",
        "whole queue",
    ),
    (
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "20",
            "spark.dynamicAllocation.maxExecutors": "10",
        },
        "error",
        "spark.dynamicAllocation.minExecutors",
        "at most spark.dynamicAllocation.maxExecutors (10)",
    ),
    (
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.maxExecutors": "10",
            "spark.executor.instances": "5",
        },
        "info",
        "spark.executor.instances",
        "only where dynamic allocation starts",
    ),
    (
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.maxExecutors": "10",
            "spark.dynamicAllocation.shuffleTracking.enabled": "false",
        },
        "error",
        "spark.dynamicAllocation.shuffleTracking.enabled",
        "to keep shuffle files",
    ),
    (
        {"spark.executor.heartbeatInterval": "3min"},
        "error",
        "spark.executor.heartbeatInterval",
        "below spark.network.timeout (2 min)",
    ),
    (
        {"spark.network.crypto.enabled": "true"},
        "error",
        "spark.network.crypto.enabled",
        "spark.authenticate true",
    ),
    ({"spark.shuffle.push.enabled": "true"}, "warning", "spark.shuffle.push.enabled", "needs YARN"),
    (
        {"spark.speculation.quantile": "0.95"},
        "info",
        "spark.speculation.quantile",
        "while spark.speculation is false",
    ),
    (
        {"spark.speculation": "true", "spark.speculation.multiplier": "1.5"},
        "info",
        "spark.speculation.multiplier",
        "below Spark 4's default of 3",
    ),
    ({"spark.eventLog.enabled": "true"}, "warning", "spark.eventLog.enabled", "/tmp/spark-events"),
    ({"spark.plugins": f"{COMET},{RAPIDS}"}, "error", "spark.plugins", "one accelerator"),
    ({"spark.plugins": COMET}, "warning", "spark.plugins", "switches itself off"),
    ({"spark.plugins": COMET}, "warning", "spark.plugins", "without Comet's shuffle manager"),
    ({"spark.plugins": RAPIDS, "spark.serializer": KRYO}, "error", "spark.serializer", REGISTRATOR),
    (
        {"spark.plugins": RAPIDS, "spark.sql.shuffle.orderIndependentChecksum.enabled": "true"},
        "warning",
        "spark.sql.shuffle.orderIndependentChecksum.enabled",
        "Spark's own shuffle",
    ),
    (
        {"spark.plugins": RAPIDS, "spark.sql.session.timeZone": "Europe/Berlin"},
        "warning",
        "spark.sql.session.timeZone",
        "UTC only",
    ),
    (
        {"spark.rapids.memory.pinnedPool.size": "4g", "spark.executor.memoryOverhead": "4g"},
        "warning",
        "spark.executor.memoryOverhead",
        "at least 5 GiB",
    ),
    ({"spark.master": "local[*]", GPU: "1"}, "error", GPU, "waits for ever"),
    # 5 cores and a whole GPU per task: one task at a time; 1 / 5 = 0.2.
    (
        {"spark.master": "yarn", "spark.executor.cores": "5", GPU: "1", SHARE: "1"},
        "warning",
        SHARE,
        "only 1 of 5 tasks at once",
    ),
    (
        {"spark.master": "yarn", "spark.executor.cores": "5", GPU: "1", SHARE: "1"},
        "warning",
        SHARE,
        "at most 0.2",
    ),
    (
        {
            "spark.master": "k8s://https://h:443",
            "spark.executor.resource.gpu.discoveryScript": "./getGpus.sh",
        },
        "warning",
        "spark.executor.resource.gpu.discoveryScript",
        "a relative path",
    ),
    ({"spark.plugins": RAPIDS, GPU: "2"}, "error", GPU, "one GPU per executor"),
]


@pytest.mark.parametrize(("settings", "severity", "key", "words"), TOGETHER)
def test_settings_that_go_together(settings: dict[str, str], severity: str, key: str, words: str) -> None:
    found = [each for each in findings(settings) if (each.severity, each.key) == (severity, key)]
    assert any(words in f"{each.sentence}; {each.hint}" for each in found), findings(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"},
        {"spark.sql.autoBroadcastJoinThreshold": "-1"},
        {"spark.shuffle.io.maxRetries": "10", "spark.shuffle.io.retryWait": "15s"},
        {"spark.shuffle.io.maxRetries": "60", "spark.shuffle.io.retryWait": "1s"},
        {"spark.master": "local[8]", "spark.executor.cores": "8"},
        {"spark.executor.cores": "16", GPU: "1", SHARE: "0.0625"},
        {"spark.executor.cores": "16", GPU: "1", SHARE: "0.001"},
        {"spark.executor.cores": "4", "spark.cores.max": "12"},
        {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "50"},
        {"spark.dynamicAllocation.minExecutors": "20", "spark.dynamicAllocation.maxExecutors": "10"},
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.maxExecutors": "50",
            "spark.dynamicAllocation.shuffleTracking.enabled": "false",
            "spark.shuffle.service.enabled": "true",
        },
        {"spark.executor.heartbeatInterval": "60s", "spark.network.timeout": "300s"},
        {"spark.network.crypto.enabled": "true", "spark.authenticate": "true"},
        {
            "spark.shuffle.push.enabled": "true",
            "spark.shuffle.service.enabled": "true",
            "spark.master": "yarn",
        },
        {"spark.speculation": "true"},
        {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "hdfs:///spark-logs"},
        {
            "spark.plugins": COMET,
            "spark.shuffle.manager": COMET_SHUFFLE,
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": "2g",
        },
        {"spark.plugins": RAPIDS, "spark.serializer": KRYO, "spark.kryo.registrator": REGISTRATOR},
        {"spark.rapids.memory.pinnedPool.size": "4g", "spark.executor.memoryOverhead": "6g"},
        {"spark.master": "yarn", "spark.executor.resource.gpu.discoveryScript": "./getGpus.sh"},
    ],
)
def test_settings_that_get_on_well(settings: dict[str, str]) -> None:
    assert findings(settings) == []


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("accelerator", ["none", "comet", "rapids"])
def test_the_suite_s_own_profiles_are_clean(site: str, accelerator: str) -> None:
    if accelerator != "none" and not (CONF / f"{accelerator}.conf").is_file():
        pytest.skip("no such overlay")
    name = site if accelerator == "none" else f"{site}+{accelerator}"
    found = check_profile(load_profile(name, folder=CONF), late=False)
    assert [each.line() for each in found if each.severity != "info"] == []


def test_comet_s_memory_is_computed_for_the_suite_s_own_profiles_only() -> None:
    settings = {
        "spark.plugins": COMET,
        "spark.shuffle.manager": COMET_SHUFFLE,
        "spark.memory.offHeap.enabled": "true",
    }
    assert findings(settings) == []
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    assert [each.severity for each in audit_text(text, origin="x")] == ["error"]
    assert [each.severity for each in findings({**settings, "spark.memory.offHeap.size": "0"})] == ["error"]


def test_every_error_is_raised_at_once() -> None:
    found = findings(
        {
            "spark.executor.memroy": "4g",
            "spark.shuffle.manager": "hash",
            "spark.executor.cores": "four",
            "spark.storage.memoryFraction": "0.5",
        }
    )
    with pytest.raises(SeveralErrors) as raised:
        raise_errors(found)
    assert len(raised.value.problems) == 3
    assert {type(problem) for problem in raised.value.problems} == {ConfigurationError}
    text = str(raised.value)
    assert "did you mean spark.executor.memory" in text
    assert "key `spark.shuffle.manager`: expected one of sort, tungsten-sort" in text
    assert "got 'four' from --conf" in text
    assert "memoryFraction" not in text
    assert raised.value.exit_code == 2


def test_one_error_is_raised_alone_and_warnings_are_not() -> None:
    with pytest.raises(ConfigurationError, match=r"`spark.executor.cores`: expected 1 or more, got '0'"):
        raise_errors(findings({"spark.executor.cores": "0"}))
    raise_errors(findings({"spark.storage.memoryFraction": "0.5", "spark.locality.wait": "60s"}))


def test_flags_for_a_new_session_come_too_late_under_spark_submit() -> None:
    asked = {
        "spark.driver.memory": "2g",
        "spark.sql.warehouse.dir": "/w",
        "spark.sql.shuffle.partitions": "11",
    }
    late = findings(asked, late=True)
    assert [(each.key, each.severity) for each in late] == [
        ("spark.driver.memory", "warning"),
        ("spark.sql.warehouse.dir", "warning"),
    ]
    assert all("set too late" in each.sentence for each in late)
    assert late[0].hint == "give it to spark-submit itself: --conf spark.driver.memory=2g"
    assert findings(asked) == []


def test_what_cannot_be_used_anyway_is_not_too_late_as_well() -> None:
    late = findings({"spark.driver.memory": "2048", "spark.shuffle.memoryFraction": "0.3"}, late=True)
    assert [(each.key, each.severity) for each in late] == [
        ("spark.driver.memory", "error"),
        ("spark.shuffle.memoryFraction", "warning"),
    ]
    # What spark-submit was given is not in the profile: nothing is said about settings that go together.
    together = findings({"spark.memory.offHeap.size": "2g"}, late=True)
    assert ["set too late" in each.sentence for each in together] == [True]
    layers = profile({"spark.driver.memory": "2g"}, layer="yarn", origin="conf/yarn.conf:3")
    assert check_profile(layers, late=True) == []


FILE = """\
# somebody's own
spark.master                     yarn
spark.executor.memory            6g
spark.executor.memory            8g
spark.storage.memoryFraction     0.5
spark.sql.shuffle.partitons=800
fs.s3a.endpoint: https://store
spark.yarn.queue
spark.authenticate.secret        hunter2
"""


def test_a_file_of_anyone_s_is_audited_without_stopping() -> None:
    found = [each.line() for each in audit_text(FILE, origin="my.conf")]
    assert found == [
        "warning: my.conf:4: spark.executor.memory = 8g: stands at my.conf:3 too: the last one counts",
        "warning: my.conf:7: fs.s3a.endpoint = https://store: spark-submit ignores keys that do not begin "
        "with spark.; Hadoop's own go by spark.hadoop.fs.s3a.endpoint",
        "warning: my.conf:8: spark.yarn.queue = : no value: Spark gets an empty text",
        "warning: my.conf:5: spark.storage.memoryFraction = 0.5: Spark 4 ignores it; instead: "
        "spark.memory.fraction (one pool since Spark 1.6; execution borrows from the cache by itself) [R6]",
        "error: my.conf:6: spark.sql.shuffle.partitons = 800: expected a key that Spark knows; "
        "did you mean spark.sql.shuffle.partitions",
    ]


def test_the_guide_s_own_sample_is_told_what_became_of_it() -> None:
    text = (
        "spark.default.parallelism 1000\nspark.storage.memoryFraction 0.5\nspark.shuffle.memoryFraction 0.3\n"
    )
    found = {each.key: each for each in audit_text(text, origin="f")}
    assert {key: (each.severity, each.guidelines) for key, each in found.items()} == {
        "spark.default.parallelism": ("info", ("R5",)),
        "spark.storage.memoryFraction": ("warning", ("R6",)),
        "spark.shuffle.memoryFraction": ("warning", ("R7", "H5")),
    }


# By java.util.Properties.load.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b c", [(1, "a", "b c")]),
        ("a=b=c", [(1, "a", "b=c")]),
        ("a : b", [(1, "a", "b")]),
        ("a == b", [(1, "a", "= b")]),
        ("  a\tb  ", [(1, "a", "b")]),
        ("a\\ b c", [(1, "a b", "c")]),
        ("a\\:b=c", [(1, "a:b", "c")]),
        ("a x\\\n   y\nb 1", [(1, "a", "xy"), (3, "b", "1")]),
        ("a x\\\\\nb 1", [(1, "a", "x\\"), (2, "b", "1")]),
        ("a \\u00e4\\t.", [(1, "a", "ä\t.")]),
        ("a c:\\dir", [(1, "a", "c:dir")]),
        ("! no\n\n#no\r\na 1\r\nb", [(4, "a", "1"), (5, "b", "")]),
        ("a 1\\", [(1, "a", "1")]),
        ("", []),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert [tuple(entry) for entry in entries(text)] == expected


def test_a_profile_is_shown_with_origins_and_reasons_and_no_secret() -> None:
    shown = profile(
        {
            "spark.locality.wait": "0s",
            "spark.authenticate.secret": "hunter2",
            "spark.authenticate.secert": "hunter2",
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:mysql://u:hunter2@h/db?password=hunter2",
            "spark.mycompany.team": "x",
        },
        origin="conf/local.conf:7",
    )
    rows = {row.key: row for row in render_profile(shown)}
    assert list(rows) == sorted(rows)
    assert rows["spark.locality.wait"][1:4] == ("0s", "conf/local.conf:7", "D10")
    assert "wait" in rows["spark.locality.wait"].why
    assert (
        rows["spark.hadoop.javax.jdo.option.ConnectionURL"].why == "Settings of Hadoop and its file systems."
    )
    assert rows["spark.mycompany.team"][1:] == ("x", "conf/local.conf:7", "", "")
    assert "hunter2" not in str(rows)


def test_no_finding_shows_a_secret() -> None:
    secret = {
        "spark.authenticate.secret": "hunter2",
        "spark.authenticate.secrett": "hunter2",
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
        "spark.yarn.access.namenodes": "hdfs://me:hunter2@h:8020",
    }
    found = findings(secret, late=True)
    text = "\n".join(each.line() for each in found)
    assert {each.key for each in found} == set(secret)
    assert "hunter2" not in text
    with pytest.raises(ConfigurationError) as raised:
        raise_errors(found)
    assert "hunter2" not in str(raised.value)
