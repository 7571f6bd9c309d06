"""`saltpan submit`: a job's command line is validated, and run by spark-submit where the profile says."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from common.core import console
from common.core.errors import ConfigurationError, ExitCode, UsageError
from common.engine.rapids_preflight import cpu_sentence, prepare_rapids
from common.runs.child import run_child
from common.runs.execution import configure_job_logs
from common.runs.job_file import JobFile, find_job
from common.runs.preparation import check_keys
from common.runs.submission_package import submission_package
from common.runs.submit_process import find_spark_submit, submit_environment, write_privately
from common.runs.submit_session import SubmittedSession, submitted_session
from common.settings.command_line import Command
from common.settings.job import pairs
from common.settings.profiles import Profile, Setting, conf_folder, load_profile, log_config
from common.settings.submission import (
    PROPERTIES_FILE,
    Submission,
    check_submission,
    render_submission,
    resolve_master,
)
from common.settings.submit_options import SubmitOptions, parse_submit


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
    configure_job_logs(command.settings)
    environ = dict(os.environ)
    folder = conf_folder(options.conf_dir or command.settings.conf_dir, environ=environ)
    session = _session(job, command, options, folder=folder, environ=environ)
    with tempfile.TemporaryDirectory(prefix="saltpan-submit-") as scratch:
        submission = _render(
            job, arguments, command, options, session, folder=folder, scratch=Path(scratch), environ=environ
        )
        if options.dry_run:
            console.print_text(submission.shown())
            return ExitCode.OK
        environ = {**session.environ, **submit_environment(environ, options, submission, folder=folder)}
        write_privately(Path(scratch) / PROPERTIES_FILE, submission.properties)
        code = run_child(submission.command, environ=environ)
    session.start.ended(code, environ=environ)
    return code


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


def _session(
    job: JobFile, command: Command, options: SubmitOptions, *, folder: Path, environ: Mapping[str, str]
) -> SubmittedSession:
    """The settings and the start of what spark-submit is to run; what is wrong with them is told first."""
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
    check_keys(profile)
    master = resolve_master(profile, flag=options.master, environ=environ) or ""
    check_submission(profile, master=master, deploy_mode=options.deploy_mode, job_file=str(job.path))
    session = submitted_session(
        profile,
        command,
        master=master,
        deploy_mode=options.deploy_mode,
        folder=folder,
        overrides=overrides,
        environ=environ,
        dry_run=options.dry_run,
    )
    return replace(session, profile=_with_driver_python(session.profile, options))


def _with_driver_python(profile: Profile, options: SubmitOptions) -> Profile:
    """The workers' Python may be one that only they have; the driver's is this one."""
    key = "spark.pyspark.driver.python"
    if options.deploy_mode == "cluster" or not profile.value("spark.pyspark.python") or profile.value(key):
        return profile
    return profile.with_settings([Setting(key, sys.executable, "submit", "saltpan submit")])


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
    session: SubmittedSession,
    *,
    folder: Path,
    scratch: Path,
    environ: Mapping[str, str],
) -> Submission:
    log = log_config(folder)
    quiet = options.deploy_mode == "client" and not command.settings.debug and log is not None
    log_options = [f"-Dlog4j2.configurationFile={log.resolve().as_uri()}"] if quiet and log else []
    return render_submission(
        str(job.path),
        arguments,
        session.profile,
        py_files=str(submission_package()),
        master=resolve_master(session.profile, flag=options.master, environ=environ),
        deploy_mode=options.deploy_mode,
        program="spark-submit" if options.dry_run else find_spark_submit(environ),
        properties_file=PROPERTIES_FILE if options.dry_run else str(scratch / PROPERTIES_FILE),
        driver_options=[*log_options, *session.start.java_options],
    )
