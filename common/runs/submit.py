"""`saltpan submit`: a job's command line is validated, and run by spark-submit where the profile says."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.core import console
from common.core.errors import ConfigurationError, ExitCode, InstallationError, UsageError
from common.engine.java import check_java, check_spark_home, check_worker_python
from common.engine.rapids_preflight import cpu_sentence, prepare_rapids, spark_home
from common.runs.child import run_child
from common.runs.job_file import JobFile, find_job
from common.runs.submission_package import submission_package
from common.settings.command_line import Command
from common.settings.job import pairs
from common.settings.profiles import Profile, Setting, conf_folder, load_profile, log_config
from common.settings.submission import PROPERTIES_FILE, Submission, render_submission, resolve_master
from common.settings.submit_options import SubmitOptions, parse_submit

_HERE = ("local", "spark://")  # masters whose workers are taken to have this machine's Python


def submit_job(words: Sequence[str]) -> int:
    """Run `saltpan submit JOB FLAGS -- JOB ARGUMENTS`.

    Returns:
        spark-submit's exit code, which in client mode is the job's own.

    Raises:
        SuiteError: what was typed is wrong, or this machine cannot start Spark; nothing was started.
    """
    parsed = parse_submit(words)
    if parsed is None:
        return ExitCode.OK
    name, options, arguments = parsed
    job = find_job(name)
    command = job.understand(arguments, environ=os.environ)
    if command is None:
        return ExitCode.OK
    _check_origins(command, options)
    environ = dict(os.environ)
    folder = conf_folder(options.conf_dir or command.settings.conf_dir, environ=environ)
    profile = _profile(command, options, folder=folder, environ=environ)
    with tempfile.TemporaryDirectory(prefix="saltpan-submit-") as scratch:
        submission = _render(
            job, arguments, command, options, profile, folder=folder, scratch=Path(scratch), environ=environ
        )
        if options.dry_run:
            console.print_text(submission.shown())
            return ExitCode.OK
        environ = _environment(environ, options, submission, folder=folder)
        _write_privately(Path(scratch) / PROPERTIES_FILE, submission.properties)
        return run_child(submission.command, environ=environ)


def _check_origins(command: Command, options: SubmitOptions) -> None:
    """In cluster mode the driver sees neither this environment nor this machine's files.

    Raises:
        ConfigurationError: a setting came from either.
    """
    others = {
        field: name
        for field, name in command.origins.items()
        if name != "flag" and field not in ("runs_dir", "conf_dir")
    }
    if options.deploy_mode == "cluster" and (others or command.settings.config):
        names = sorted({*others.values(), *(["--config"] if command.settings.config else [])})
        raise ConfigurationError(
            "settings",
            ", ".join(names),
            expected="flags only with --deploy-mode cluster, whose driver runs on another machine",
            got="an environment variable or a file of this one",
            hint="give them as flags after --",
        )


def _profile(
    command: Command, options: SubmitOptions, *, folder: Path, environ: Mapping[str, str]
) -> Profile:
    asked = {name for name in (options.profile, command.settings.profile) if name}
    if len(asked) > 1:
        raise UsageError(
            "flag", "--profile", expected="one profile", got=" and ".join(sorted(asked)), hint="drop one"
        )
    # The job applies its own --conf last, as far as a running session takes it: so it wins here too.
    overrides = {**pairs(options.conf), **pairs(command.settings.conf)}
    profile = load_profile(next(iter(asked), "local"), folder=folder, overrides=overrides)
    if profile.accelerator == "rapids":
        profile = _with_rapids(profile, options, folder=folder, environ=environ, overrides=overrides)
    if options.deploy_mode == "client" and profile.value("spark.pyspark.python"):
        # The workers' Python may be one that only they have; the driver's is this one.
        driver = Setting("spark.pyspark.driver.python", sys.executable, "submit", "saltpan submit")
        if not profile.value(driver.key):
            profile = profile.with_settings([driver])
    return profile


def _with_rapids(
    profile: Profile,
    options: SubmitOptions,
    *,
    folder: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, str],
) -> Profile:
    ready = prepare_rapids(profile, folder=folder, environ=environ, deploy_mode=options.deploy_mode)
    for warning in ready.warnings:
        console.say(f"warning: {warning}")
    if not ready.missing:
        return ready.profile
    console.say(cpu_sentence(ready.missing))
    return load_profile(profile.site, folder=folder, overrides=overrides)


def _render(
    job: JobFile,
    arguments: Sequence[str],
    command: Command,
    options: SubmitOptions,
    profile: Profile,
    *,
    folder: Path,
    scratch: Path,
    environ: Mapping[str, str],
) -> Submission:
    log = log_config(folder)
    quiet = options.deploy_mode == "client" and not command.settings.debug and log is not None
    return render_submission(
        str(job.path),
        arguments,
        profile,
        py_files=str(submission_package()),
        master=resolve_master(profile, flag=options.master, environ=environ),
        deploy_mode=options.deploy_mode,
        program="spark-submit" if options.dry_run else _find_spark_submit(environ),
        properties_file=PROPERTIES_FILE if options.dry_run else str(scratch / PROPERTIES_FILE),
        driver_options=[f"-Dlog4j2.configurationFile={log.resolve().as_uri()}"] if quiet and log else (),
    )


def _environment(
    environ: Mapping[str, str], options: SubmitOptions, submission: Submission, *, folder: Path
) -> dict[str, str]:
    """What spark-submit gets to see: this Spark, and this Python where workers can be taken to have it."""
    master = submission.command[submission.command.index("--master") + 1]
    if master.startswith("yarn"):
        _check_hadoop(environ)
    check_java(environ)
    check_spark_home(environ)
    new = {"SPARK_HOME": str(spark_home(environ))}
    if options.deploy_mode == "client":
        here = master.startswith(_HERE)
        if here:
            check_worker_python(environ)
        new |= {
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": sys.executable if here else "python3",
        }
        if options.conf_dir:
            new["SALTPAN_CONF"] = str(folder.resolve())
    return {**new, **environ}


def _check_hadoop(environ: Mapping[str, str]) -> None:
    """The YARN client finds its cluster by a folder that a variable names, or Spark's own spark-env.sh.

    Raises:
        ConfigurationError: nothing names it.
    """
    names = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
    folder = Path(environ.get("SPARK_CONF_DIR") or spark_home(environ) / "conf")
    if not any(environ.get(name) for name in names) and not (folder / "spark-env.sh").is_file():
        expected = "the folder of the cluster's core-site.xml and yarn-site.xml"
        hint = f"export {names[0]} or {names[1]}"
        raise ConfigurationError("variable", names[0], expected=expected, got="nothing", hint=hint)


def _write_privately(path: Path, text: str) -> None:
    """Secrets are for this user only: on a command line everybody on the machine would read them."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="ascii")


def _find_spark_submit(environ: Mapping[str, str]) -> str:
    """Beside the running Python (the environment's), then SPARK_HOME's, then the first on PATH.

    Raises:
        InstallationError: it is nowhere.
    """
    folders = [Path(sys.executable).parent]
    if environ.get("SPARK_HOME"):
        folders.append(Path(environ["SPARK_HOME"]) / "bin")
    for folder in folders:
        if os.access(folder / "spark-submit", os.X_OK):
            return str(folder / "spark-submit")
    found = shutil.which("spark-submit", path=environ.get("PATH"))
    if found is None:
        raise InstallationError(
            "command",
            "spark-submit",
            expected="one beside this Python, in SPARK_HOME or on PATH",
            got="none",
            hint="run `pip install pyspark`, or set SPARK_HOME to a Spark folder",
        )
    return found
