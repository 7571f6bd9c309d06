"""Configuration in layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.core.errors import ConfigurationError, UnknownNameError
from common.settings.profiles import conf_folder, load_profile, parse_properties

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


def test_an_unknown_profile_is_named_with_the_nearest(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"`locl`: expected one of comet, local.*did you mean `local`"):
        load_profile("locl", folder=folder)
    with pytest.raises(UnknownNameError, match="`gpu`"):
        load_profile("local+gpu", folder=folder)


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


@pytest.mark.parametrize("path", sorted(CONF.glob("*.conf")), ids=lambda path: path.name)
def test_every_line_of_ours_has_a_reason(path: Path) -> None:
    lines = path.read_text().splitlines()
    reasons = [index for index, line in enumerate(lines) if line.startswith("#")]
    keys = [index for index, line in enumerate(lines) if line and not line.startswith("#")]
    assert keys
    assert reasons
    parse_properties(path.read_text(), layer="x", origin=path.name)


def test_the_local_profile_is_of_base_and_local() -> None:
    profile = load_profile("local", folder=CONF)
    assert profile.value("spark.master") == "local[*]"
    assert profile.value("spark.sql.session.timeZone") == "UTC"
    assert {setting.layer for setting in profile.settings.values()} == {"base", "local"}
