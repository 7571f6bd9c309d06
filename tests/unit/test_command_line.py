"""From argv, environment and TOML to settings: precedence, characters, and every wrong value in one go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from common.core.errors import SeveralErrors, SuiteError, UnknownNameError, UsageError
from common.settings.command_line import Command, parse_command
from common.settings.job import Columns, JobSettings, Sql


class Settings(JobSettings):
    """Flags of a job for tests."""

    score: Sql
    """What to rank by."""
    n: int = Field(default=10, ge=0, le=100)
    """How many."""
    ties: Literal["first", "all", "dense"] = "first"
    """What ties do."""
    group_by: Columns = ()
    """Columns."""
    where: Sql | None = None
    """A condition."""


def parse(argv: Sequence[str], environ: Mapping[str, str] | None = None, *, bare: bool = False) -> Command:
    words = list(argv) if bare else ["--input", "in", "--score", "v", *argv]
    command = parse_command(
        Settings, job="topn", summary="Top N.", inputs=("input",), argv=words, environ=environ or {}
    )
    assert command is not None
    return command


def complaint(argv: Sequence[str], environ: Mapping[str, str] | None = None, *, bare: bool = False) -> str:
    with pytest.raises(SuiteError) as caught:
        parse(argv, environ, bare=bare)
    assert caught.value.exit_code == 2
    return str(caught.value)


def value(name: str, argv: Sequence[str], environ: Mapping[str, str] | None = None) -> object:
    return getattr(parse(argv, environ).settings, name)


@pytest.mark.parametrize(
    ("argv", "name", "expected"),
    [
        ([], "n", 10),
        (["--n", "0"], "n", 0),
        (["--n=7"], "n", 7),
        (["--group-by", "dest,origin"], "group_by", ("dest", "origin")),
        (["--group-by", "dest", "--group-by", "origin"], "group_by", ("dest", "origin")),
        (["--group_by", "dest"], "group_by", ("dest",)),
        (["--group-by", "`a,b`,c"], "group_by", ("a,b", "c")),
        (["--group-by", "`a``,b`, c`d,x=`y,z`"], "group_by", ("a`,b", "c`d", "x=y,z")),
        (["--where", "-v > 3"], "where", "-v > 3"),
        (["--where", "--not-a-flag"], "where", "--not-a-flag"),
        (["--progress"], "progress", True),
        (["--no-progress"], "progress", False),
        (["-v"], "verbose", True),
        (["--conf", "spark.x=a=b,c"], "conf", ("spark.x=a=b,c",)),
    ],
)
def test_flags(argv: list[str], name: str, expected: object) -> None:
    assert value(name, argv) == expected


@pytest.mark.parametrize(
    "path", ["a,b.csv", "x{1}.csv", "with space", "{a,b}/*.parquet", "ü.csv", "50%+.csv", ""]
)
def test_paths_are_taken_as_they_are(path: str) -> None:
    command = parse(["--input", path, "--input", "b", "--score", "v"], bare=True)
    assert command.inputs[0].paths == (path, "b")


def test_inputs_with_their_own_format_schema_and_options(tmp_path: Path) -> None:
    (tmp_path / "schema.ddl").write_text("zip STRING,\n n INT\n")
    extra = ["--input-format", "csv", "--input-schema", f"@{tmp_path}/schema.ddl", "--input-option", "sep=;"]
    request = parse(extra).inputs[0]
    assert (request.name, request.format, request.options) == ("input", "csv", {"sep": ";"})
    assert request.schema == "zip STRING,\n n INT"


def test_flags_win_over_environment_and_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text('n = 7\nties = "all"\ngroup-by = ["a", "b"]\nverify = true\n[conf]\n"spark.x" = 3\n')
    environ = {"SALTPAN_TOPN_N": "8", "SALTPAN_TOPN_TIES": "dense", "SALTPAN_CONFIG": str(file)}
    command = parse(["--ties", "first"], environ)
    settings = command.settings
    assert isinstance(settings, Settings)
    assert (settings.n, settings.ties, settings.group_by) == (8, "first", ("a", "b"))
    assert (settings.verify, settings.conf) == (True, ("spark.x=3",))
    assert command.origins["n"] == "SALTPAN_TOPN_N"
    assert command.origins["verify"] == f"verify in {file}"


def test_the_folder_of_profiles_in_the_environment_is_not_the_flag_conf() -> None:
    assert value("conf", [], {"SALTPAN_CONF": "/etc/saltpan"}) == ()


def test_every_wrong_value_at_once() -> None:
    text = complaint(["--ouput", "x", "--n", "-1", "--ties", "frist", "--group-by", "a,,b"])
    assert text.splitlines() == [
        "[NAME_UNKNOWN] flag `--ouput`: expected a flag of this job, got --ouput."
        " Hint: did you mean `--output`, `--input`, `--output-files`.",
        "[ARGUMENT_INVALID] setting `--n`: expected a number >= 0 and <= 100, got '-1'.",
        "[ARGUMENT_INVALID] setting `--ties`: expected one of first, all, dense, got 'frist'."
        " Hint: did you mean `first`.",
        "[ARGUMENT_INVALID] setting `--group-by`: expected column names between commas, got an empty name.",
    ]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--n", "ten"], "`--n`: expected a whole number >= 0 and <= 100, got 'ten'"),
        (["--n"], "`--n`: expected a value after it, got nothing"),
        (["--n", "1", "--n", "2"], "`--n`: expected once, got the flag repeated"),
        (["stray"], "`stray`: expected a flag before every value"),
        (["-x"], "`-x`: expected a flag of this job"),
        (["--conf", "spark.x"], "`--conf`: expected KEY=VALUE, got 'spark.x'"),
        (["--conf", "a=1", "--conf", "a=2"], "`--conf`: expected each key once"),
        (["--group-by", "a,a"], "`--group-by`: expected each column once"),
        (["--verify=maybe"], "`--verify`"),
        (["--input-schema", "@/nowhere.ddl"], "`--input-schema`: expected a readable file after @"),
        (["--input-allow-empty"], "expected --input-schema beside it"),
        (["--output-files", "0"], "`--output-files`: expected a number >= 1 and <= 100000, got '0'"),
        (["--config", "/nowhere.toml"], "`/nowhere.toml`: expected a readable TOML file, got no such file"),
    ],
)
def test_a_wrong_word_is_named_with_what_was_expected(argv: list[str], words: str) -> None:
    assert words in complaint(argv)


def test_a_glob_that_the_shell_expanded_gets_a_hint() -> None:
    text = complaint(["--input", "a.csv", "b.csv", "--score", "v"], bare=True)
    assert "put globs in quotes" in text


def test_what_is_missing_is_named() -> None:
    lines = complaint([], bare=True).splitlines()
    assert [line.split("`")[1] for line in lines] == ["--score", "--input"]


def test_a_wrong_value_is_named_by_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text('n = "x"\n')
    assert f"`n in {file}`: expected a whole number" in complaint(["--config", str(file)])
    assert "`SALTPAN_TOPN_N`: expected a whole number" in complaint([], {"SALTPAN_TOPN_N": "x"})


@pytest.mark.parametrize(
    ("text", "words"),
    [("nn = 1", "did you mean `n`"), ("n = ", "expected TOML"), ('n = 1\n"n" = 2', "expected TOML")],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "job.toml").write_text(text)
    assert words in complaint(["--config", str(tmp_path / "job.toml")])


def test_problems_between_settings_are_reported() -> None:
    class Strict(Settings):
        """Flags that contradict each other."""

        def problems(self) -> list[SuiteError]:
            return [
                UsageError("flag", "--a", expected="b", got="c"),
                UnknownNameError("flag", "--d", expected="e", got="f"),
            ]

    with pytest.raises(SeveralErrors, match=r"`--a`.*\n.*`--d`"):
        parse_command(
            Strict, job="x", summary="", inputs=("input",), argv=["--input", "i", "--score", "v"], environ={}
        )


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_flag(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = parse_command(
        Settings, job="topn", summary="Top N.", inputs=("left", "right"), argv=[flag], environ={}
    )
    text = capsys.readouterr().out
    assert command is None
    for name in ("--score", "--left", "--right-schema", "--group-by", "--output", "--verify", "--runs-dir"):
        assert name in text
