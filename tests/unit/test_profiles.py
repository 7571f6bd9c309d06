"""Configuration in layers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.core.errors import ConfigurationError, UnknownNameError
from common.runs.submission_package import submission_package
from common.settings.profiles import Setting, conf_folder, load_profile, parse_properties

GUIDELINES = {
    f"{kind}{n}" for kind, last in (("D", 10), ("R", 7), ("K", 8), ("H", 8)) for n in range(1, last + 1)
}
CONF = Path(__file__).resolve().parents[2] / "conf"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.conf").write_text("# all\nspark.a 1\nspark.b 1\nspark.c 1\n")
    (tmp_path / "local.conf").write_text("spark.b=2\nspark.c=2\n")
    (tmp_path / "comet.conf").write_text("spark.c: 3\nspark.d 3\n")
    return tmp_path


def test_later_layers_win_and_every_value_knows_its_origin(folder: Path) -> None:
    profile = load_profile("local+comet", folder=folder, overrides={"spark.d": "4"})
    values = {key: setting.value for key, setting in profile.settings.items()}
    assert values == {"spark.a": "1", "spark.b": "2", "spark.c": "3", "spark.d": "4"}
    origins = {key: setting.origin.rpartition("/")[2] for key, setting in profile.settings.items()}
    assert origins == {
        "spark.a": "base.conf:2", "spark.b": "local.conf:1", "spark.c": "comet.conf:1", "spark.d": "--conf",
    }  # fmt: skip


def test_what_an_accelerator_needs_on_one_site_only_wins_over_the_rest_of_it(folder: Path) -> None:
    (folder / "other.conf").write_text("spark.b 5\n")
    (folder / "comet@local.conf").write_text("spark.d 6\n")
    local = load_profile("local+comet", folder=folder)
    assert (local.value("spark.c"), local.value("spark.d")) == ("3", "6")
    assert local.settings["spark.d"].layer == "comet@local"
    assert load_profile("other+comet", folder=folder).value("spark.d") == "3"
    assert load_profile("local+comet", folder=folder, overrides={"spark.d": "7"}).value("spark.d") == "7"


def test_site_and_accelerator_of_a_name(folder: Path) -> None:
    both, one = load_profile("local+comet", folder=folder), load_profile("local", folder=folder)
    assert [(each.site, each.accelerator) for each in (both, one)] == [("local", "comet"), ("local", "none")]


@pytest.mark.parametrize("name", ["local", "local+none", "local+auto"])
def test_no_accelerator_brings_no_layer(folder: Path, name: str) -> None:
    profile = load_profile(name, folder=folder)
    assert {setting.layer for setting in profile.settings.values()} == {"base", "local"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("locl", r"profile `locl`: expected one of local, got 'locl'. Hint: did you mean `local`"),
        ("local+gpu", r"accelerator `gpu`: expected one of comet, rapids, none, auto"),
        ("local+comt", r"accelerator `comt`.*did you mean `comet`"),
        ("local+", r"accelerator ``"),
        ("local+local", r"accelerator `local`"),
        ("local+comet+rapids", r"accelerator `comet\+rapids`"),
        ("comet", r"an accelerator follows a site, as in `local\+comet`"),
        ("comet+local", r"an accelerator follows a site, as in `local\+comet`"),
        ("comet@local", r"profile `comet@local`: expected one of local"),
    ],
)
def test_what_is_no_profile(folder: Path, name: str, words: str) -> None:
    (folder / "comet@local.conf").write_text("spark.d 6\n")
    with pytest.raises(UnknownNameError, match=words):
        load_profile(name, folder=folder)


def test_settings_put_in_and_taken_out(folder: Path) -> None:
    profile = load_profile("local", folder=folder)
    changed = profile.with_settings([Setting("spark.a", "9", "x", "y")], without=["spark.b"])
    assert {key: each.value for key, each in changed.settings.items()} == {"spark.a": "9", "spark.c": "2"}
    assert (changed.name, profile.value("spark.a")) == ("local", "1")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("spark.a b c", ("spark.a", "b c")),
        ("spark.a=b=c", ("spark.a", "b=c")),
        ("spark.a = b", ("spark.a", "b")),
        ("  spark.a\tb  ", ("spark.a", "b")),
        ("spark.a:b", ("spark.a", "b")),
        ("spark.a -Dx=1 \\\n  -Dy=2", ("spark.a", "-Dx=1 -Dy=2")),
    ],
)
def test_the_forms_of_a_line(line: str, expected: tuple[str, str]) -> None:
    (setting,) = parse_properties(line, layer="x", origin="x.conf")
    assert (setting.key, setting.value) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("spark.a 1\nspark.a 2", "twice, at x.conf:1 and x.conf:2"),
        ("spark.a", "expected a value after the key"),
    ],
)
def test_what_a_layer_must_not_hold(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_properties(text, layer="x", origin="x.conf")


def test_where_the_profiles_are(folder: Path, tmp_path: Path) -> None:
    assert conf_folder(None, environ={}) == CONF
    assert conf_folder(None, environ={"SALTPAN_CONF": str(folder)}) == folder
    assert conf_folder(str(folder), environ={"SALTPAN_CONF": "/nowhere"}) == folder
    with pytest.raises(
        ConfigurationError, match=r"`/nowhere`: expected a base.conf in it, got none, named by SALTPAN_CONF"
    ):
        conf_folder(None, environ={"SALTPAN_CONF": "/nowhere"})


def test_the_profiles_of_a_package_that_runs_from_its_zip(tmp_path: Path) -> None:
    archive = tmp_path / "suite.zip"
    archive.write_bytes(submission_package(tmp_path).read_bytes())
    code = (
        "from common.settings import profiles as p; f = p.conf_folder(None, environ={});"
        "yarn = p.load_profile('yarn+rapids', folder=f);"
        "print(p.__file__, yarn.value('spark.plugins'), p.log_config(f), sep='|')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    place, plugin, log = done.stdout.strip().split("|")
    assert place.startswith(str(archive)), done.stderr
    assert plugin == "com.nvidia.spark.SQLPlugin"
    assert log.endswith("log4j2.properties")
    assert not Path(log).exists()  # the folder went with the process


# Keys whose reason is another than a guideline's: addresses, names, and what the plugin demands.
WITHOUT_GUIDELINE = {
    "spark.master", "spark.plugins", "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions",
    "spark.jars.packages", "spark.driver.extraClassPath", "spark.executor.extraClassPath",
    "spark.executor.resource.gpu.vendor", "spark.executor.resource.gpu.discoveryScript",
    "spark.kubernetes.authenticate.driver.serviceAccountName",
}  # fmt: skip
OF_CLUSTERS = [
    path for path in CONF.glob("*.conf") if path.stem.split("@")[0] in ("standalone", "yarn", "k8s", "rapids")
]


@pytest.mark.parametrize("path", sorted(OF_CLUSTERS), ids=lambda path: path.name)
def test_every_key_of_a_cluster_has_its_own_reason_and_guideline(path: Path) -> None:
    lines = path.read_text().splitlines()
    keys = [index for index, line in enumerate(lines) if line and not line.startswith("#")]
    assert keys or path.stem == "connect"
    for index in keys:
        key, reason = lines[index].split()[0], lines[index - 1]
        assert reason.startswith("# "), key
        ids = re.search(r"\(([A-Z]\d+(?:, [A-Z]\d+)*)\)\.$", reason)
        assert (ids is None) == (key in WITHOUT_GUIDELINE), (key, reason)
        assert ids is None or set(ids[1].split(", ")) <= GUIDELINES


def test_no_layer_says_again_what_the_layers_below_it_say() -> None:
    below = {setting.key: setting.value for setting in load_profile("base", folder=CONF).settings.values()}
    for path in OF_CLUSTERS:
        settings = parse_properties(path.read_text(), layer="x", origin="x")
        assert [each for each in settings if below.get(each.key) == each.value] == []


@pytest.mark.parametrize("path", sorted(CONF.glob("*.conf")), ids=lambda path: path.name)
def test_every_line_of_ours_has_a_reason(path: Path) -> None:
    lines = path.read_text().splitlines()
    reasons = [index for index, line in enumerate(lines) if line.startswith("#")]
    keys = [index for index, line in enumerate(lines) if line and not line.startswith("#")]
    assert keys or path.stem == "connect"
    assert reasons
    parse_properties(path.read_text(), layer="x", origin=path.name)


def test_the_local_profile_is_of_base_and_local() -> None:
    profile = load_profile("local", folder=CONF)
    assert profile.value("spark.master") == "local[*]"
    assert profile.value("spark.sql.session.timeZone") == "UTC"
    assert {setting.layer for setting in profile.settings.values()} == {"base", "local"}
