"""RAPIDS profiles: what each site gets, what is computed, what is missing; by the plugin's own documents."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from common.engine.rapids_preflight import (
    Gpus,
    Missing,
    check_rapids,
    cpu_sentence,
    look_for_gpus,
    parse_gpus,
    prepare_rapids,
)
from common.settings.profiles import Profile, load_profile
from common.settings.rapids import complete_rapids, rapids_warnings

CONF = Path(__file__).resolve().parents[2] / "conf"
PER_TASK, PER_EXECUTOR = "spark.task.resource.gpu.amount", "spark.executor.resource.gpu.amount"
SCRIPT = "spark.executor.resource.gpu.discoveryScript"
T4 = Gpus((("Tesla T4", 7.5),), "580.95.05")
COORDINATE = "com.nvidia:rapids-4-spark_2.13:26.08.1"


def rapids(site: str, *, spark: str = "4.1.3", **settings: str) -> Profile:
    overrides = {f"spark.{key.replace('_', '.')}": value for key, value in settings.items()}
    profile = load_profile(f"{site}+rapids", folder=CONF, overrides=overrides)
    return complete_rapids(profile, spark_version=spark, folder=CONF)


def missing(profile: Profile, *, spark: str = "4.1.3", scala: str = "2.13", **more: object) -> list[str]:
    gpus = more.pop("gpus", T4)
    found = check_rapids(profile, spark_version=spark, scala_version=scala, gpus=gpus, **more)  # type: ignore[arg-type]
    return [item.what for item in found]


@pytest.mark.parametrize("site", ["local", "standalone", "yarn", "k8s"])
def test_every_site_gets_the_plugin_whole(site: str) -> None:
    profile = rapids(site)
    assert profile.value("spark.plugins") == "com.nvidia.spark.SQLPlugin"
    assert profile.value("spark.serializer") == "org.apache.spark.serializer.KryoSerializer"
    assert profile.value("spark.kryo.registrator") == "com.nvidia.spark.rapids.GpuKryoRegistrator"
    assert profile.value("spark.kryoserializer.buffer.max") == "512m"
    assert profile.value("spark.sql.session.timeZone") == "UTC"
    for side in ("driver", "executor"):
        options = profile.value(f"spark.{side}.extraJavaOptions").split()
        assert {"-Duser.timezone=UTC", "-Dfile.encoding=UTF-8"} <= set(options)
    assert profile.value("spark.rapids.memory.pinnedPool.size") in ("2g", "8g")
    assert profile.value("spark.locality.wait") == "0s"
    assert missing(profile, deploy_mode="cluster") == []


def test_local_mode_has_no_resource_amounts_even_when_asked() -> None:
    asked = {"task_resource_gpu_amount": "1", "executor_resource_gpu_amount": "1"}
    assert not [key for key in rapids("local", **asked).settings if ".resource.gpu." in key]
    with_amounts = load_profile("local+rapids", folder=CONF, overrides={PER_TASK: "1", PER_EXECUTOR: "1"})
    assert [text.split()[0] for text in rapids_warnings(with_amounts)] == [PER_TASK, PER_EXECUTOR]
    assert rapids("local").value("spark.executor.memoryOverhead") == ""


@pytest.mark.parametrize(
    ("cores", "share"), [("5", "0.2"), ("16", "0.0625"), ("1", "1"), ("3", "0.3333"), ("7", "0.1428")]
)
def test_each_core_gets_its_share_of_the_gpu(cores: str, share: str) -> None:
    profile = rapids("yarn", executor_cores=cores)
    assert (profile.value(PER_EXECUTOR), profile.value(PER_TASK)) == ("1", share)
    # Spark runs floor(1 / amount) tasks per GPU.
    assert int(1 / float(share)) == int(cores)


def test_where_the_cores_are_the_workers_own_the_share_limits_nothing() -> None:
    assert rapids("standalone").value(PER_TASK) == "0.001"


def test_the_overhead_follows_heap_and_pinned_memory() -> None:
    # 40 % of 32 GiB, 8 GiB pinned, 1 GiB pageable, in MiB, rounded up.
    assert rapids("yarn").value("spark.executor.memoryOverhead") == "22324m"
    small = rapids("k8s", executor_memory="10g", executor_memoryOverheadFactor="0.1")
    assert small.value("spark.executor.memoryOverhead") == f"{1024 + 8192 + 1024}m"
    assert rapids("yarn", executor_memoryOverhead="3g").value("spark.executor.memoryOverhead") == "3g"
    assert rapids("standalone").value("spark.executor.memoryOverhead") == ""


@pytest.mark.parametrize(
    ("spark", "digits", "checksums"),
    [("4.1.1", "411", ""), ("4.1.3", "413", ""), ("4.2.0", "420", "false"), ("4.3.0", "430", "false")],
)
def test_the_shuffle_manager_and_the_checksums_go_by_sparks_version(
    spark: str, digits: str, checksums: str
) -> None:
    profile = rapids("yarn", spark=spark)
    manager = f"com.nvidia.spark.rapids.spark{digits}.RapidsShuffleManager"
    assert profile.value("spark.shuffle.manager") == manager
    keys = ("enabled", "enableFullRetryOnMismatch")
    found = {profile.value(f"spark.sql.shuffle.orderIndependentChecksum.{key}") for key in keys}
    assert found == {checksums}


def test_the_discovery_script_travels_to_yarn_and_is_in_the_image_of_kubernetes() -> None:
    yarn = rapids("yarn")
    assert yarn.value("spark.files") == str(CONF / "discovery" / "get_gpus.sh")
    assert yarn.value(SCRIPT) == "./get_gpus.sh"
    assert os.access(yarn.value("spark.files"), os.X_OK)
    assert rapids("k8s").value(SCRIPT).startswith("/opt/")
    assert rapids("k8s").value("spark.executor.resource.gpu.vendor") == "nvidia.com"
    assert rapids("standalone").value(SCRIPT) == ""  # the worker has looked already


def test_the_discovery_script_says_it_in_sparks_form(tmp_path: Path) -> None:
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\necho 0\necho 1\n")
    fake.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.defpath}"}
    said = subprocess.run([CONF / "discovery" / "get_gpus.sh"], env=environ, capture_output=True, check=True)
    assert json.loads(said.stdout) == {"name": "gpu", "addresses": ["0", "1"]}
    fake.write_text("#!/bin/sh\nexit 9\n")
    failed = subprocess.run([CONF / "discovery" / "get_gpus.sh"], env=environ, check=False)
    assert failed.returncode != 0


def test_g10_one_task_per_gpu_old_keys_and_a_relative_script_are_told() -> None:
    half_set = load_profile("k8s+rapids", folder=CONF, overrides={
        "spark.executor.cores": "5", PER_TASK: "1", SCRIPT: "gpus.sh",
        "spark.rapids.memory.gpu.pooling.enabled": "true",
    })  # fmt: skip
    old, one, relative = rapids_warnings(half_set)
    assert old.startswith("spark.rapids.memory.gpu.pooling.enabled is gone: spark.rapids.memory.gpu.pool ")
    assert (
        one
        == f"{PER_TASK} 1 lets 1 of 5 tasks of an executor run at a time; 0.2 lets all of them share its GPU"
    )
    assert relative.startswith(f"{SCRIPT} gpus.sh is relative")
    assert rapids_warnings(rapids("yarn")) == rapids_warnings(rapids("standalone")) == []
    assert "the plugin uses 1" in rapids_warnings(rapids("yarn", executor_resource_gpu_amount="2"))[0]


def test_g10_without_gpu_and_jar_both_are_named_and_the_run_goes_on() -> None:
    bare = Profile("local+rapids", {})
    found = check_rapids(
        bare, spark_version="4.1.3", scala_version="2.13", gpus=Gpus(problem="no nvidia-smi on PATH")
    )
    assert [item.what for item in found] == ["jar", "driver"]
    sentence = cpu_sentence(found)
    assert sentence.startswith("RAPIDS is off, the CPU gives the same answer: jar: ")
    assert f"--conf spark.jars.packages={COORDINATE}" in sentence
    assert "no nvidia-smi on PATH" in sentence


@pytest.mark.parametrize(
    ("spark", "scala", "what"),
    [
        ("4.1.3", "2.13", []),
        ("4.2.0", "2.13", []),
        ("4.1.0", "2.13", ["Spark version"]),
        ("4.1.4", "2.13", ["Spark version"]),
        ("4.2.1", "2.13", ["Spark version"]),
        ("4.3.0", "2.13", ["Spark version"]),
        ("4.1.3", "2.12", ["Scala version"]),
    ],
)
def test_the_plugin_wants_exactly_its_spark_and_scala(spark: str, scala: str, what: list[str]) -> None:
    assert missing(rapids("local", spark=spark), spark=spark, scala=scala) == what


@pytest.mark.parametrize(
    ("gpus", "what"),
    [
        (T4, []),
        (Gpus((("Tesla P100", 6.0),), "580.1"), ["GPU"]),
        (Gpus((("Tesla P100", 6.0), ("L4", 8.9)), "580.1"), []),
        (Gpus((("Tesla T4", 7.5),), "470.82.01"), ["driver"]),
        (Gpus((), "580.1", "none visible"), ["GPU"]),
        (Gpus(problem="no nvidia-smi on PATH"), ["driver"]),
        (None, []),
    ],
)
def test_gpus_and_drivers(gpus: Gpus | None, what: list[str]) -> None:
    assert missing(rapids("local"), gpus=gpus) == what


def test_a_plugin_for_cuda_13_wants_a_newer_driver() -> None:
    profile = rapids("local", jars_packages=f"{COORDINATE}:cuda13")
    assert missing(profile, gpus=Gpus((("L4", 8.9),), "570.1")) == ["driver"]
    assert missing(profile, gpus=Gpus((("L4", 8.9),), "580.1")) == []


def test_a_jar_of_ones_own_takes_the_place_of_the_fetched_one(tmp_path: Path) -> None:
    jar = tmp_path / "rapids-4-spark_2.13-26.08.1-cuda13.jar"
    named = rapids("local", jars=f"/other.jar,{jar}", jars_packages=f"a:b:1,{COORDINATE}")
    assert named.value("spark.jars.packages") == "a:b:1"
    assert "spark.jars.packages" not in rapids("local", jars=str(jar)).settings
    assert missing(named) == ["jar"]
    assert missing(named, deploy_mode="cluster") == []
    jar.touch()
    assert missing(named) == []
    on_class_path = Profile("x+rapids", rapids("local", driver_extraClassPath=f"/a:{jar}:/b").settings)
    assert missing(on_class_path) == []
    assert missing(rapids("local", jars=f"file://{jar}")) == []
    assert missing(rapids("local", jars=f"hdfs://h/{jar.name}")) == []


def test_a_jar_among_sparks_own(tmp_path: Path) -> None:
    bare = Profile("local+rapids", {})
    assert missing(bare, jars_folder=tmp_path) == ["jar"]
    (tmp_path / "rapids-4-spark_2.12-26.08.1.jar").touch()
    assert missing(bare, jars_folder=tmp_path) == ["Scala version"]


def test_kubernetes_in_client_mode_needs_the_jar_here_too() -> None:
    assert missing(rapids("k8s"), gpus=None) == ["jar"]


@pytest.mark.parametrize(
    ("script", "visible", "expected"),
    [
        ("echo 'Tesla T4, 550.54.15, 7.5'; echo 'NVIDIA L4, 550.54.15, 8.9'", None,
         Gpus((("Tesla T4", 7.5), ("NVIDIA L4", 8.9)), "550.54.15")),
        ("echo 'Tesla T4, 550.54.15, 7.5'", "",
         Gpus((), "550.54.15", "none visible, CUDA_VISIBLE_DEVICES hides them")),
        ("echo 'Unable to load it'; exit 9", None, Gpus(problem="from nvidia-smi: Unable to load it")),
        ("echo 'No devices were found'", None, Gpus(problem="no GPU in nvidia-smi's list")),
        ("sleep 5", None, Gpus(problem="an nvidia-smi that does not answer (TimeoutExpired)")),
        (None, None, Gpus(problem="no nvidia-smi on PATH")),
    ],
)  # fmt: skip
def test_what_nvidia_smi_says(
    tmp_path: Path, script: str | None, visible: str | None, expected: Gpus
) -> None:
    if script:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.defpath}"} if script else {"PATH": str(tmp_path)}
    environ |= {"CUDA_VISIBLE_DEVICES": visible} if visible is not None else {}
    assert look_for_gpus(environ, timeout_seconds=0.2) == expected


def test_a_profile_is_made_ready_for_the_spark_that_is_installed(tmp_path: Path) -> None:
    profile = load_profile("local+rapids", folder=CONF, overrides={PER_TASK: "1"})
    ready = prepare_rapids(profile, folder=CONF, environ={"PATH": str(tmp_path)})
    assert [item.what for item in ready.missing] == ["driver"]
    assert [text.split()[0] for text in ready.warnings] == [PER_TASK]
    digits = version("pyspark").replace(".", "")
    assert f".spark{digits}." in ready.profile.value("spark.shuffle.manager")


def test_text_that_is_no_list_of_gpus() -> None:
    assert parse_gpus("") == parse_gpus("garbage, and, more") == Gpus(problem="no GPU in nvidia-smi's list")


def test_a_missing_thing_in_words() -> None:
    assert (
        str(Missing("GPU", "one", "none", "leave +rapids out"))
        == "GPU: expected one, got none (leave +rapids out)"
    )
