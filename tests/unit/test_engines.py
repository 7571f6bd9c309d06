"""What engines can do, where a Connect server is, and what follows for paths; without an engine."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from common.core.errors import InstallationError, UsageError
from common.engine.connect_session import check_client
from common.engine.server_paths import check_server_output, list_on_server
from common.engine.session import choose_site
from common.settings.engines import capabilities, known_capabilities, lacking, release_of
from common.settings.inputs import InputRequest
from common.settings.job import JobSettings
from common.settings.remote import parse_remote
from tests.engine_probes import PROBES

HERE, ELSEWHERE = "sc://localhost:15002", "sc://spark.example.org"


def test_every_capability_has_a_probe_that_tries_it() -> None:
    assert set(known_capabilities()) == {probe.__name__ for probe in PROBES}


def test_a_release_brings_a_capability_to_both_kinds() -> None:
    for kind in ("classic", "connect"):
        has = [
            "top_k_aggregate" in capabilities(kind, spark_version=version)
            for version in ("4.1.3", "4.2.0-preview", "4.3.0", "10.0")
        ]
        assert has == [False, True, True, True]


def test_connect_has_no_jvm_objects() -> None:
    missing = capabilities("classic", spark_version="4.1.3") - capabilities("connect", spark_version="4.1.3")
    assert missing == {"classic", "rdd", "accumulator", "broadcast_variable", "file_systems"}


def test_what_is_lacking_is_said_in_words() -> None:
    assert lacking(["observe"], available={"observe"}) is None
    why = lacking(["rdd", "accumulator"], available={"observe"})
    assert why == "it needs RDDs and accumulators, which this engine does not have"
    with pytest.raises(KeyError):
        lacking(["rddd"], available={"rdd"})


@pytest.mark.parametrize(
    ("text", "numbers"), [("4.1.3", (4, 1, 3)), ("4.2.0-preview4", (4, 2, 0)), ("unknown", ())]
)
def test_release_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert release_of(text) == numbers


@pytest.mark.parametrize(
    ("url", "shown", "is_here"),
    [
        ("sc://localhost", "sc://localhost:15002", True),
        ("sc://localhost/", "sc://localhost:15002", True),
        ("sc://LOCALHOST:7", "sc://localhost:7", True),
        ("sc://127.0.0.2:7/;use_ssl=true;token=hunter2", "sc://127.0.0.2:7", True),
        ("sc://[::1]:7", "sc://[::1]:7", True),
        ("sc://localhost.example.org:443/;user_id=me", "sc://localhost.example.org:443", False),
        ("sc://0.0.0.0:7", "sc://0.0.0.0:7", False),
        ("sc://192.0.2.7:7", "sc://192.0.2.7:7", False),
    ],
)
def test_addresses(url: str, shown: str, is_here: bool) -> None:
    remote = parse_remote(url)
    assert (remote.url, remote.shown, remote.is_here) == (url, shown, is_here)
    assert "hunter2" not in repr(remote)


@pytest.mark.parametrize(
    "url",
    [
        "", "localhost:15002", "SC://h", "http://h", "local[2]", "sc://", "sc://:7", "sc://h:0", "sc://h:x",
        "sc://h:70000", "sc://[::1", "sc://h/path", "sc://me:hunter2@h", "sc://h;token=hunter2",
        "sc://h/;token", "sc://h/;token=", "sc://h/;=hunter2", "sc://h/;token=hunter2=", "sc://h/;token=a/hunter2",
        "sc://h/;token=a?hunter2", "sc://h/;token=a#hunter2", "sc://h/;a=b;;token=hunter2", "sc://h?token=hunter2",
    ],
)  # fmt: skip
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_remote(url, by="SPARK_REMOTE")
    assert "SPARK_REMOTE" in str(caught.value)
    assert "sc://HOST:PORT" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_settings_know_an_address() -> None:
    assert JobSettings(remote=HERE).remote == HERE
    with pytest.raises(ValueError, match="sc://HOST:PORT"):
        JobSettings(remote="spark.example.org")


SUBMITTED = {
    "PYSPARK_GATEWAY_PORT": "1",
    "PYSPARK_REMOTE_INIT_CONF_LEN": "2",
    "PYSPARK_REMOTE_INIT_CONF_0": f'{{"spark.remote": "{HERE}", "spark.app.name": "x"}}',
    "PYSPARK_REMOTE_INIT_CONF_1": '{"spark.sql.shuffle.partitions": "9"}',
}


@pytest.mark.parametrize(
    ("environ", "asked", "site"),
    [
        ({}, {}, ("local", "local", None)),
        ({}, {"profile": "local+comet"}, ("local", "local+comet", None)),
        ({"PYSPARK_GATEWAY_PORT": "1"}, {}, ("submit", "base", None)),
        ({"PYSPARK_GATEWAY_PORT": "1"}, {"profile": "yarn"}, ("submit", "yarn", None)),
        ({}, {"remote": HERE}, ("connect", "base", HERE)),
        ({"SPARK_REMOTE": ELSEWHERE}, {}, ("connect", "base", ELSEWHERE)),
        ({"SPARK_REMOTE": ELSEWHERE}, {"remote": HERE}, ("connect", "base", HERE)),
        ({}, {"remote": HERE, "profile": "connect+none"}, ("connect", "connect+none", HERE)),
        (SUBMITTED, {}, ("connect", "base", HERE)),
    ],
)
def test_the_site_is_chosen_before_a_session(
    environ: dict[str, str], asked: dict[str, str], site: tuple[str, str, str | None]
) -> None:
    chosen = choose_site(environ, **asked)
    assert (chosen.name, chosen.profile, chosen.remote and chosen.remote.url) == site
    assert chosen.is_elsewhere == (site[2] == ELSEWHERE)


def test_what_spark_submit_was_given_for_a_server_is_kept() -> None:
    (setting,) = choose_site(SUBMITTED).submitted
    assert (setting.key, setting.value) == ("spark.sql.shuffle.partitions", "9")


@pytest.mark.parametrize(
    ("environ", "asked", "words"),
    [
        ({"PYSPARK_GATEWAY_PORT": "1"}, {"remote": HERE}, ["--remote", "spark-submit's", "saltpan run"]),
        ({}, {"remote": HERE, "profile": "yarn"}, ["--profile", "beside --remote", "`yarn`"]),
        ({"SPARK_REMOTE": HERE}, {"profile": "local"}, ["--profile", "beside SPARK_REMOTE", "`local`"]),
        ({"SPARK_REMOTE": "local[2]"}, {}, ["SPARK_REMOTE", "`local[2]`"]),
        ({"SPARK_REMOTE": ""}, {}, ["SPARK_REMOTE", "nothing"]),
    ],
)
def test_two_kinds_of_session_are_refused(
    environ: dict[str, str], asked: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        choose_site(environ, **asked)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("path", "file_format"),
    [("/data/x.csv", "csv"), ("rel/x.tsv", "csv"), ("/data/x", "auto"), ("s3a://b/x.parquet", "parquet")],
)
def test_a_server_elsewhere_lists_its_paths_itself(path: str, file_format: str) -> None:
    listing = list_on_server(InputRequest("input", (path,)))
    assert (listing.request.paths, listing.format, listing.is_listed) == ((path,), file_format, False)
    assert {"existence", "hidden files"} <= set(listing.unchecked)


def test_a_table_is_a_table_on_every_server() -> None:
    assert list_on_server(InputRequest("input", ("table:a.b",))).format == "table"
    with pytest.raises(UsageError, match="one table and nothing else"):
        list_on_server(InputRequest("input", ("/x", "table:a.b")))


@pytest.mark.parametrize(
    ("output", "url", "hint"),
    [
        ("/out", ELSEWHERE, "where the server runs"),
        ("out", ELSEWHERE, "where the server runs"),
        ("hdfs:///out", HERE, "spark-submit"),
        ("s3a://b/out", ELSEWHERE, "spark-submit"),
    ],
)
def test_outputs_that_cannot_be_published(output: str, url: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint) as caught:
        check_server_output(output, remote=parse_remote(url))
    assert f"output `{output}`" in str(caught.value)


@pytest.mark.parametrize("output", [None, "/out", "out", "file:///out"])
def test_outputs_on_this_machine(output: str | None) -> None:
    check_server_output(output, remote=parse_remote(HERE))
    assert parse_remote(HERE).is_here


@pytest.mark.parametrize("package", ["grpc", "grpc_status", "google.rpc", "zstandard"])
def test_a_missing_package_of_the_client(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for name in [name for name in sys.modules if name.startswith("pyspark.sql.connect")]:
        monkeypatch.delitem(sys.modules, name)
    absent: Any = None  # an import of it fails
    monkeypatch.setitem(sys.modules, package, absent)
    with pytest.raises(InstallationError) as caught:
        check_client()
    assert "pip install 'saltpan[connect]'" in str(caught.value)
    assert {"google.rpc": "googleapis-common-protos", "grpc": "grpcio"}.get(
        package, package.partition("_")[0]
    ) in str(caught.value)
