"""What spark-submit gets, and the words of `saltpan submit`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.core.errors import (
    ConfigurationError,
    SeveralErrors,
    UsageError,
)
from common.settings.profiles import Profile, Setting, load_profile
from common.settings.submission import Submission, properties_text, render_submission, resolve_master
from common.settings.submit_options import parse_submit

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
IMAGE = "spark.kubernetes.container.image"


def profile_of(name: str, settings: Mapping[str, str]) -> Profile:
    return Profile(name, {key: Setting(key, value, "x", "x:1") for key, value in settings.items()})


def render(profile: Profile, **more: object) -> Submission:
    return render_submission("/jobs/topn.py", ["--n", "3"], profile, py_files="/suite.zip", **more)  # type: ignore[arg-type]


def java_properties(text: str) -> dict[str, str]:
    """What java.util.Properties.load makes of a text, by its documentation."""
    entries = {}
    for raw in re.findall(r"(?:\\[\s\S]|[^\\\n\r])+", text):
        line = raw.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        found = re.match(r"((?:\\[\s\S]|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*([\s\S]*)", line)
        assert found
        entries[java_unescaped(found[1])] = java_unescaped(found[2])
    return entries


def java_unescaped(text: str) -> str:
    controls = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

    def one(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else controls.get(found[2], found[2])

    units = re.sub(r"\\(?:u([0-9a-f]{4})|([\s\S]))", one, text)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_java_reads_back_every_text(values: dict[str, str]) -> None:
    text = properties_text(values)
    assert java_properties(text) == values
    assert text.isascii()
    assert len(text.splitlines()) == len(values)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a=b:c # d ! e", "a=b:c # d ! e"),
        ("C:\\new", "C:\\\\new"),
        (" led by a space", "\\ led by a space"),
        ("two\nlines", "two\\nlines"),
        ("é", "\\u00e9"),
        ("𝄞", "\\ud834\\udd1e"),
    ],
)
def test_values_as_the_documentation_of_properties_writes_them(value: str, written: str) -> None:
    assert properties_text({"spark.x": value}) == f"spark.x={written}\n"


def test_the_command_and_the_file() -> None:
    submission = render(load_profile("yarn", folder=CONF), driver_options=["-Dlog=1"])
    assert submission.command == (
        *("spark-submit", "--master", "yarn", "--deploy-mode", "client"),
        *("--properties-file", "saltpan.properties", "--load-spark-defaults"),
        *("--py-files", "/suite.zip", "/jobs/topn.py", "--n", "3"),
    )
    values = java_properties(submission.properties)
    assert values["spark.driver.extraJavaOptions"] == "-Dlog=1 -Duser.timezone=UTC"
    assert values["spark.executor.extraJavaOptions"] == "-Duser.timezone=UTC"
    assert values["spark.dynamicAllocation.shuffleTracking.enabled"] == "true"
    assert values["spark.sql.session.timeZone"] == "UTC"
    assert "spark.master" not in values  # it stands in the command, once
    assert not [key for key in values if "python" in key.lower() and "arrow" not in key]


def test_options_of_the_profile_come_after_ours_and_utc_only_once() -> None:
    own = profile_of("local", {
        "spark.master": "local[1]",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -Xss4m",
        "spark.executor.extraJavaOptions": "-Duser.timezone=Asia/Tokyo",
    })  # fmt: skip
    values = java_properties(render(own).properties)
    assert values["spark.driver.extraJavaOptions"] == "-Duser.timezone=UTC -Xss4m"
    # Java takes the last of two.
    assert values["spark.executor.extraJavaOptions"] == "-Duser.timezone=UTC -Duser.timezone=Asia/Tokyo"


def test_secrets_are_in_the_file_and_not_in_what_is_printed() -> None:
    secret = {
        "spark.master": "local[1]",
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
        "spark.x.url": "jdbc:x://h/d?password=hunter2",
        "spark.y": "plain",
    }
    submission = render_submission(
        "j.py", ["--input-option", "password=hunter2"], profile_of("local", secret), py_files="z"
    )
    assert java_properties(submission.properties)["spark.hadoop.fs.s3a.secret.key"] == "hunter2"
    assert submission.command[-1] == "password=hunter2"
    assert "hunter2" not in submission.shown()
    assert "spark.y=plain" in submission.shown()


def test_what_is_printed_can_be_pasted_into_a_shell() -> None:
    profile = profile_of("local", {"spark.master": "local[*]"})
    submission = render_submission("my job.py", ["--score", 'count(*) AS "n\'"'], profile, py_files="z")
    line = submission.shown().splitlines()[-1]
    echoed = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert echoed == list(submission.command)


@pytest.mark.parametrize(
    ("flag", "own", "environ", "expected"),
    [
        ("spark://a:1", "spark://b:1", "spark://c:1", "spark://a:1"),
        (None, "spark://b:1", "spark://c:1", "spark://b:1"),
        (None, None, "spark://c:1", "spark://c:1"),
        (None, None, None, None),
    ],
)
def test_where_the_master_comes_from(
    flag: str | None, own: str | None, environ: str | None, expected: str | None
) -> None:
    profile = profile_of("standalone", {"spark.master": own} if own else {})
    assert (
        resolve_master(profile, flag=flag, environ={"SPARK_MASTER": environ} if environ else {}) == expected
    )


@pytest.mark.parametrize(
    ("site", "settings", "mode", "named"),
    [
        ("standalone", {}, "client", ["--master spark://HOST:7077", "$SPARK_MASTER"]),
        ("k8s", {}, "client", ["--master k8s://https://HOST:6443", f"--conf {IMAGE}=NAME:TAG"]),
        (
            "k8s",
            {"spark.master": "k8s://https://h:1", IMAGE: "i"},
            "cluster",
            ["kubernetes.file.upload.path"],
        ),
        ("k8s", {"spark.master": "k8s://https://h:1"}, "client", [IMAGE]),
    ],
)
def test_all_that_only_the_user_knows_is_asked_for_in_one_error(
    site: str, settings: dict[str, str], mode: str, named: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        render(load_profile(site, folder=CONF, overrides=settings), deploy_mode=mode)
    assert [each for each in named if each not in str(caught.value)] == []
    assert "HOST" not in str(caught.value) or "spark.master" not in settings


def test_a_kubernetes_profile_that_is_filled() -> None:
    given = {IMAGE: "suite:1", "spark.kubernetes.file.upload.path": "s3a://b/f"}
    profile = load_profile("k8s", folder=CONF, overrides=given)
    submission = render(profile, master="k8s://https://h:6443", deploy_mode="cluster")
    assert submission.command[1:5] == ("--master", "k8s://https://h:6443", "--deploy-mode", "cluster")
    values = java_properties(submission.properties)
    assert values["spark.locality.wait"] == "0s"
    assert values["spark.decommission.enabled"] == values["spark.storage.decommission.enabled"] == "true"
    assert values["spark.kubernetes.authenticate.driver.serviceAccountName"] == "spark"
    assert values[IMAGE] == "suite:1"
    roles = {f"spark.kubernetes.{role}.container.image": "x" for role in ("driver", "executor")}
    own = load_profile(
        "k8s", folder=CONF, overrides={**roles, "spark.kubernetes.file.upload.path": "s3a://b"}
    )
    assert render(own, master="k8s://https://h", deploy_mode="cluster").command[2] == "k8s://https://h"


@pytest.mark.parametrize(
    ("site", "master", "mode", "words"),
    [
        ("standalone", "local[2]", "client", "expected spark://HOST:7077.*--profile local goes with it"),
        ("yarn", "spark://h:1", "client", "expected yarn.*--profile standalone goes with it"),
        ("local", "yarn", "client", "--profile yarn goes with it"),
        ("local", "local[2]", "cluster", "`--deploy-mode`: expected client with the master local"),
        ("standalone", "spark://h:1", "cluster", "YARN and Kubernetes only"),
        ("local", "sc://h:1", "client", "saltpan run JOB --remote"),
    ],
)
def test_masters_that_do_not_go_with_the_rest(site: str, master: str, mode: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        render(load_profile(site, folder=CONF), master=master, deploy_mode=mode)


def test_a_site_of_the_users_own_takes_any_master(tmp_path: Path) -> None:
    (tmp_path / "base.conf").write_text("spark.a 1\n")
    (tmp_path / "ours.conf").write_text("spark.master yarn\n")
    assert render(load_profile("ours", folder=tmp_path)).command[2] == "yarn"


def test_the_words_of_submit() -> None:
    words = [
        "topn",
        "--profile",
        "yarn",
        "--conf",
        "a=1",
        "--conf",
        "b=2",
        "--dry-run",
        "--",
        "--n",
        "3",
        "--",
    ]
    parsed = parse_submit(words)
    assert parsed is not None
    job, options, arguments = parsed
    assert (job, arguments) == ("topn", ("--n", "3", "--"))
    assert (options.profile, options.conf, options.dry_run) == ("yarn", ("a=1", "b=2"), True)
    assert (options.deploy_mode, options.master) == ("client", None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["topn", "--profil", "yarn"], "`--profil`.*did you mean `--profile`"),
        (["topn", "--input", "x"], "`--input`.*the job's own flags come after --"),
        (["topn", "--deploy-mode", "clustr"], "one of client, cluster.*did you mean `cluster`"),
        (["topn", "--conf", "a"], "expected KEY=VALUE"),
        (["topn", "stray"], "`stray`"),
        (["--profile", "yarn"], "got no job"),
        ([], "got no job"),
    ],
)
def test_mistakes_in_the_words_of_submit(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse_submit(words)


def test_several_mistakes_are_told_at_once() -> None:
    with pytest.raises(SeveralErrors) as caught:
        parse_submit(["topn", "--profil", "yarn", "--deploy-mode", "x"])
    assert [problem.name for problem in caught.value.problems] == ["--profil", "--deploy-mode"]


def test_the_flags_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_submit(["--help"]) is None
    out = capsys.readouterr().out
    assert "Usage: saltpan submit JOB" in out
    assert "--dry-run" in out
