"""The `saltpan` command: finds the job and hands over; decides nothing."""

from __future__ import annotations

import ast
import os
import runpy
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from common import __version__
from common.core import console
from common.core.errors import (
    ConfigurationError,
    ExitCode,
    FileUnreadableError,
    JobError,
    PathAbsentError,
    SuiteError,
    UnknownNameError,
    UsageError,
    did_you_mean,
)
from common.engine.shadowing import check_beside_job

app = App(
    name="saltpan",
    help="PySpark batch jobs that are right, fast, and say why.",
    help_format="plaintext",
    version=f"saltpan {__version__}",
    result_action="return_value",
    print_error=False,
    exit_on_error=False,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a `saltpan` command line; the exit code is returned."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return int(app(words) or ExitCode.OK)
    except CycloptsError:
        console.say(f"ERROR: {_unknown(words)}")
        return int(ExitCode.USAGE)
    except SuiteError as error:
        console.say(f"ERROR: {error}")
        return int(error.exit_code)


_COMMANDS = {
    "run": "JOB …",
    "submit": "JOB …",
    "jobs": "",
    "conf": "show PROFILE, or conf check FILE",
    "doctor": "start",
}


def _unknown(words: Sequence[str]) -> SuiteError:
    word = words[0] if words else ""
    if word in _COMMANDS:
        expected = f"saltpan {word} {_COMMANDS[word]}".strip()
        return UsageError("command", " ".join(words), expected=expected, got="other words")
    names = [*_COMMANDS, "--help", "--version"]
    hint = did_you_mean(word, names) or "saltpan --help lists the commands"
    expected = f"one of {', '.join(_COMMANDS)}"
    return UnknownNameError("command", word, expected=expected, got=repr(word), hint=hint)


@app.command(help_flags=[], version_flags=[])
def run(job: str, *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Run a job of the suite by its name, or a job file of your own by its path.

    Args:
        job: A name that `saltpan jobs` lists, or a path such as ./my_job.py.
        arguments: The job's own flags; `saltpan run JOB --help` shows them.
    """
    if job.endswith(".py") or "/" in job:
        return _run_file(Path(job), arguments)
    names = sorted(_summaries())
    module = job.replace("-", "_")
    if module not in names:
        hint = did_you_mean(module, names) or "a job file of your own is given by its path, ./my_job.py"
        raise UnknownNameError("job", job, expected=f"one of {', '.join(names)}", got=repr(job), hint=hint)
    return int(import_module(f"jobs.{module}").main(list(arguments)))


@app.command(help_flags=[], version_flags=[], end_of_options_delimiter="")
def submit(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Run a job on a cluster, or here, by spark-submit; `saltpan submit --help` shows the flags."""
    from common.runs.submit import submit_job

    return submit_job(words)


@app.command
def jobs() -> int:
    """List the jobs of the suite, a line each."""
    summaries = _summaries()
    width = max(map(len, summaries))
    console.print_text(
        "\n".join(f"{name:<{width}}  {summary}" for name, summary in sorted(summaries.items()))
    )
    return ExitCode.OK


conf = App(name="conf", help="Spark settings: what a profile sets and why; what is wrong with a file.")
app.command(conf)


@conf.command
def show(profile: str, *, conf_dir: str | None = None) -> int:
    """Print a profile's settings: where each is written, the rules it follows, and why.

    Args:
        profile: SITE[+ACCELERATOR], such as local.
        conf_dir: Folder of the profiles.
    """
    from common.settings.conf_audit import Row, check_profile, render_profile
    from common.settings.profiles import conf_folder, load_profile

    loaded = load_profile(profile, folder=conf_folder(conf_dir, environ=os.environ))
    console.print_table(Row._fields, render_profile(loaded))
    for finding in check_profile(loaded, late=False):
        console.say(finding.line())
    return ExitCode.OK


@conf.command
def check(file: str) -> int:
    """Audit a properties file of anyone's: typing errors, values, dead keys, the guide's rules.

    Args:
        file: In the form of spark-defaults.conf. Exit code 1 when there is anything to mend.
    """
    from common.settings.conf_audit import audit_text

    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        got = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigurationError("file", file, expected="a readable properties file", got=got) from error
    findings = audit_text(text, origin=file)
    console.print_text("\n".join(each.line() for each in findings) or "nothing to mend")
    return ExitCode.BUG if any(each.severity != "info" for each in findings) else ExitCode.OK


doctor = App(name="doctor", help="What is wrong on this machine, and what to do about it.")
app.command(doctor)


@doctor.command
def start(
    *,
    profile: str = "local",
    conf_dir: str | None = None,
    style: Annotated[Literal["table", "json"], Parameter(name="--format")] = "table",
) -> int:
    """Check all that keeps Spark from starting here; exit code 4 when anything does.

    Args:
        profile: SITE[+ACCELERATOR], such as local.
        conf_dir: Folder of the profiles.
        style: A table, or JSON lines.
    """
    from common.engine.installation import current_folder
    from common.runs.doctor import doctor_start

    return doctor_start(profile, environ=os.environ, folder=current_folder(), conf_dir=conf_dir, style=style)


def _run_file(path: Path, arguments: Sequence[str]) -> int:
    """Run a job file as the main module, so that workers get its functions by value."""
    if not path.is_file():
        near = did_you_mean(path.name, [each.name for each in path.parent.glob("*.py")])
        raise PathAbsentError("job file", str(path), expected="a Python file", got="nothing there", hint=near)
    check_beside_job(path.resolve().parent)
    former = sys.argv
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(ExitCode.BUG if end.code else ExitCode.OK)
    except (SyntaxError, ImportError, ValueError) as error:
        # An error of running code comes through run_job; these come from loading it.
        got = f"{type(error).__name__}: {error}"
        raise JobError("job file", str(path), expected="a Python file that can be loaded", got=got) from error
    except OSError as error:
        raise FileUnreadableError(
            "job file", str(path), expected="a readable file", got=str(error)
        ) from error
    finally:
        sys.argv = former
    hint = "end the file with: raise SystemExit(run_job(MyJob()))"
    raise UnknownNameError(
        "job file", str(path), expected="a file that runs a job", got="no run_job call", hint=hint
    )


def _summaries() -> dict[str, str]:
    """Module name to the first line of its docstring, read without importing anything."""
    spec = find_spec("jobs")
    folders = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
    files = [path for folder in folders for path in Path(folder).glob("[a-z]*.py")]
    return {path.stem: _first_line(path) for path in files}


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


if __name__ == "__main__":
    raise SystemExit(main())
