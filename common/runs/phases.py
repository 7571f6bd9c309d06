"""The way of the data, one straight line for every job.

settings -> static facts -> session -> inputs -> plan -> Decision -> transform -> verify -> stage -> publish
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame

from common.core.errors import FileUnreadableError, SuiteError
from common.core.masking import mask_value
from common.core.progress import ProgressLine
from common.engine.failures import translated
from common.engine.listing import Listing, list_input
from common.engine.progress import reporting
from common.engine.server_paths import check_server_output, list_on_server
from common.engine.session import Engine, Site, choose_site, open_engine
from common.engine.sifted_rows import can_be_bad
from common.engine.storage import Storage, storage_for
from common.engine.writer import check_writable
from common.runs.acceleration import guarded, retried, without_comet
from common.runs.aftermath import keep_notes
from common.runs.bad_rows import check_all_read, pointing_at, set_aside
from common.runs.companions import BAD_ROWS
from common.runs.evidence import gather_facts, probed, recorded
from common.runs.explanation import describe_input, explain
from common.runs.inputs import ReadInputs, not_read
from common.runs.job import Counted, Inputs, Job
from common.runs.job_calls import calling, frame_of
from common.runs.levels import stages_recorded
from common.runs.preparation import checked_profile, prepared
from common.runs.publishing import Writing, open_writing, print_rows, publish, restart
from common.runs.record import RunRecord
from common.runs.recovery import restore_if_interrupted
from common.runs.sharing import share
from common.runs.signals import install_handlers
from common.runs.staging import StagedOutput
from common.runs.verification import verify
from common.settings.command_line import Command
from common.settings.inputs import InputRequest
from common.settings.job import JobSettings
from common.settings.profiles import Profile, conf_folder, log_config
from common.tuning.decision import Decision
from common.tuning.facts import Facts

_LOG = logging.getLogger("saltpan.run")


@dataclass(frozen=True)
class Run:
    """One run of a job: what was asked, and the record of what happens."""

    job: Job[Any]
    command: Command
    record: RunRecord

    @property
    def settings(self) -> JobSettings:
        """The job's settings."""
        return self.command.settings


def go(run: Run) -> None:
    """Run the job from its settings to its published or printed answer.

    Raises:
        SuiteError: with the exit code of its kind; nothing is published then.
        Interrupted: a signal asked to stop.
    """
    settings, record = run.settings, run.record
    folder = conf_folder(settings.conf_dir, environ=os.environ)
    site = choose_site(os.environ, remote=settings.remote, profile=settings.profile)
    if site.remote is not None:
        check_server_output(settings.output, remote=site.remote)
    profile = checked_profile(settings, site, folder=folder)
    with ExitStack() as stack:
        with record.phase("facts"):
            listings = {request.name: _listed(request, site) for request in run.command.inputs}
        output = _staged(run, stack, storage_for(settings.output or ""))
        with record.phase("session"), translated():
            profile, additions = prepared(
                profile, settings, site, list(listings.values()), folder=folder, record=record
            )
            opening = open_engine(
                run.job.name,
                profile,
                site=site,
                log_config=log_config(folder),
                show_all=settings.debug,
                additions=additions,
            )
            engine = stack.enter_context(opening)
        install_handlers()
        stack.callback(engine.cancel)
        _record_engine(record, engine, profile)
        line = ProgressLine(enabled=settings.progress)
        stack.callback(line.close)
        stack.enter_context(reporting(engine.spark, line.update))
        with translated(inputs=_paths(run.command.inputs)):
            _answer(run, engine, site, listings, output=output, stack=stack)


def _paths(requests: Sequence[InputRequest]) -> list[str]:
    return [path for request in requests for path in request.paths]


def _listed(request: InputRequest, site: Site, *, engine: Engine | None = None) -> Listing:
    """What is at the input's paths; a table or another file system shows itself only to a session."""
    if site.is_elsewhere:
        return list_on_server(request)
    spark = engine.spark if engine else None
    for path in request.paths:
        storage = storage_for(path, spark)
        if storage is not None and storage.is_local and restore_if_interrupted(path, storage=storage):
            _LOG.warning("restored %s, which an interrupted run had moved away", path)
    try:
        return list_input(request, storage_for(request.paths[0], spark))
    except OSError as error:
        if isinstance(error, SuiteError):
            raise
        where = ", ".join(request.paths)
        raise FileUnreadableError(
            "input", where, expected="a place that can be listed", got=str(error), hint="check its address"
        ) from error


def _staged(run: Run, stack: ExitStack, storage: Storage | None) -> StagedOutput | None:
    """The output made ready, as soon as its storage can be reached: local ones before a session starts."""
    settings = run.settings
    if settings.output is None or settings.explain or storage is None:
        return None
    return stack.enter_context(
        StagedOutput(
            settings.output,
            run_id=run.record.run_id,
            mode=settings.mode,
            storage=storage,
            inputs=_paths(run.command.inputs),
        )
    )


def _record_engine(record: RunRecord, engine: Engine, profile: Profile) -> None:
    record.configuration = {"profile": profile.name, **engine.configuration}
    record.not_applied = [asdict(item) for item in engine.not_applied]
    record.versions = engine.versions
    record.application_id = engine.application_id
    record.ui_address = engine.ui_address
    record.save()
    for item in engine.not_applied:
        shown = mask_value(item.key, item.asked), mask_value(item.key, item.effective or "unset")
        _LOG.warning("not applied: %s = %s, in force: %s (%s)", item.key, *shown, item.why)


def _answer(
    run: Run,
    engine: Engine,
    site: Site,
    listings: Mapping[str, Listing],
    *,
    output: StagedOutput | None,
    stack: ExitStack,
) -> None:
    record = run.record
    with record.phase("read"):
        requests = [request for request in run.command.inputs if not listings[request.name].is_listed]
        listings = {**listings, **{item.name: _listed(item, site, engine=engine) for item in requests}}
        frames = ReadInputs(engine.spark, listings)
    with pointing_at(listings.values(), engine.spark):
        with record.phase("read"):
            facts = _facts(run, engine, listings, frames)
        with record.phase("plan"):
            plan = _planned(run, engine, facts, frames, stack=stack)
        if run.settings.explain:
            explain(plan.answer, facts=facts, decision=plan.decision)
            return
        storage = storage_for(run.settings.output or "", engine.spark)
        output = output or _staged(run, stack, storage)
        writing = None
        if output is not None and storage is not None:
            writing = open_writing(run.job, run.command, record, output=output, storage=storage, stack=stack)
        _make(run, engine, plan, listings, writing=writing)
    keep_notes(run.job, run.settings, plan.decision)


@dataclass(frozen=True)
class _Plan:
    frames: ReadInputs
    decision: Decision
    answer: DataFrame
    counted: Counted | None


def _planned(run: Run, engine: Engine, facts: Facts, frames: ReadInputs, *, stack: ExitStack) -> _Plan:
    """What was decided, and the answer that follows; nothing of it has run."""
    job, settings = run.job, run.settings
    with calling(job, "plan"):
        decision = job.plan(facts, settings)
    run.record.decisions.append({"about": "strategy", **decision.record()})
    _LOG.info("decision: %s", decision.line())
    share(job, settings, decision, frames, facts=facts, engine=engine, stack=stack)
    with calling(job, "build"):
        built = job.build(frames, settings, decision)
    counted = built if isinstance(built, Counted) else None
    answer = frame_of(job, "build", counted.rows if counted else built)
    if settings.output is not None:
        check_writable(answer, file_format=settings.output_format)
    return _Plan(frames, decision, answer, counted)


def _make(
    run: Run, engine: Engine, plan: _Plan, listings: Mapping[str, Listing], *, writing: Writing | None
) -> None:
    """Set bad rows aside, prove the answer, and publish or print it."""
    job, settings, record, counted = run.job, run.settings, run.record, plan.counted
    rejecting = [
        name for name, one in listings.items() if one.request.bad_rows == "reject" and can_be_bad(one)
    ]
    if writing is not None and rejecting:
        with record.phase("bad rows"):
            place = writing.companions[BAD_ROWS]
            writing.bad_rows = set_aside(
                rejecting, plan.frames, engine=engine, settings=settings, record=record, place=place
            )
    with guarded(plan.answer, engine, listings.values(), record=record) as answer:
        if settings.verify:
            if rejecting:
                check_all_read(rejecting, plan.frames, record)
            _prove(answer, run, engine, plan.frames, plan.decision)
        engine.describe(f"{job.name}: {plan.decision.choice}")
        with stages_recorded(engine, record), record.phase("write" if writing else "print"):
            record.rows_out = retried(
                lambda rows: (
                    publish(rows, writing, counted)
                    if writing
                    else print_rows(rows, job, settings, record, counted=counted)
                ),
                answer,
                engine,
                restart=lambda: restart(writing, counted),
            )


def _prove(answer: DataFrame, run: Run, engine: Engine, frames: Inputs, decision: Decision) -> None:
    """Compare the answer with the plain plan's on plain Spark, before anything is published."""
    job, settings = run.job, run.settings
    engine.describe(f"{job.name}: verify")
    with run.record.phase("verify"):
        with calling(job, "plain"):
            proven = job.proof(frames, settings, decision)
            plain = frame_of(job, "plain", job.plain(proven, settings))
            if proven is not frames:
                answer = frame_of(job, "build", job.build(proven, settings, decision))
        run.record.verification = verify(
            answer,
            plain,
            approximate=job.approximate(settings),
            plainly=lambda: without_comet(engine),
        )
    _LOG.info("verified: %s", _verified(run.record.verification))


def _facts(run: Run, engine: Engine, listings: Mapping[str, Listing], frames: Inputs) -> Facts:
    facts = gather_facts(run.job.sample(run.settings), engine, listings, frames)
    engine.describe(f"{run.job.name}: facts")
    facts = probed(run.job, facts, frames, run.settings)
    for name, known in facts.inputs.items():
        _LOG.info("%s: %s", name, describe_input(known))
        for sentence in not_read(listings[name]):
            _LOG.info("%s: %s", name, sentence)
    counts = [known.row_count for known in facts.inputs.values()]
    run.record.rows_in = sum(count for count in counts if count is not None) if None not in counts else None
    run.record.inputs = [recorded(known, listings[name]) for name, known in facts.inputs.items()]
    return facts


def _verified(report: Mapping[str, Any]) -> str:
    floats = report["compared_within_1e-9"]
    within = f"; {', '.join(floats)} within a relative 1e-9" if floats else ""
    return f"{report['planned']['row_count']:,} rows equal the plain plan's by fingerprint{within}"
