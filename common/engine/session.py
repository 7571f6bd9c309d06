"""The only place that decides which kind of session a run has: ours, spark-submit's, a caller's, a server's.

PySpark is bound to one kind as soon as a session exists, so the choice comes first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from common.core.errors import UsageError
from common.engine import connect_session as connect
from common.engine import local_session as local
from common.engine.applied import NotApplied, applied, apply_settings
from common.engine.chatter import silence_query_loggers
from common.engine.handle import Addition, Engine, EngineName, is_connect
from common.settings.profiles import BASE, Profile, Setting
from common.settings.remote import Remote, parse_remote

__all__ = ["Addition", "Engine", "NotApplied", "Site", "choose_site", "open_engine", "under_submit"]

_SITES_OF_A_SERVER = (BASE, "connect")


@dataclass(frozen=True)
class Site:
    """Where a run's session comes from.

    Attributes:
        name: "local" (started here), "submit" (spark-submit's), "existing" (a caller's), "connect".
        profile: The profile to compose: what was asked for, else "local" for our own session and "base"
            where the rest is the session's own.
        remote: The server of "connect".
        submitted: What spark-submit was given for a session of a server.
    """

    name: EngineName
    profile: str
    remote: Remote | None = None
    submitted: tuple[Setting, ...] = ()

    @property
    def is_elsewhere(self) -> bool:
        """True when the session is on another machine, where paths mean something else."""
        return self.remote is not None and not self.remote.is_here


def choose_site(environ: Mapping[str, str], *, remote: str | None = None, profile: str | None = None) -> Site:
    """Choose before there is a session; nothing is started or asked.

    Args:
        environ: The environment: SPARK_REMOTE, and what spark-submit leaves there.
        remote: The address that --remote names.
        profile: The profile that --profile names.

    Raises:
        UsageError: a server is named beside another session, or beside a profile of another site; or its
            address is none.
    """
    existing = SparkSession.getActiveSession() is not None
    submitted = _submitted(environ)
    if existing or (under_submit(environ) and "spark.remote" not in submitted):
        if remote is not None:
            raise _second_session("the session that runs already" if existing else "spark-submit's")
        return Site("existing" if existing else "submit", profile or BASE)
    named = {"--remote": remote, "SPARK_REMOTE": environ.get("SPARK_REMOTE")}
    named["spark-submit --remote"] = submitted.get("spark.remote")
    for by, address in named.items():
        if address is not None:
            return _served(parse_remote(address, by=by), profile, submitted, by=by)
    return Site("local", profile or "local")


def under_submit(environ: Mapping[str, str]) -> bool:
    """True when spark-submit started this process, and its session is waiting."""
    return "PYSPARK_GATEWAY_PORT" in environ


@contextmanager
def open_engine(
    app_name: str,
    profile: Profile,
    *,
    site: Site | None = None,
    log_config: Path | None = None,
    show_all: bool = False,
    additions: Sequence[Addition] = (),
) -> Iterator[Engine]:
    """A session with the profile applied; stopped, released or given back as it was, at the end.

    Args:
        app_name: The application's name in Spark's pages.
        profile: Settings to start with, or to apply as far as a session that exists allows.
        site: Where the session comes from; chosen by the environment when left out.
        log_config: Log4j properties for a JVM that has none of its own.
        show_all: Let everything that Spark says through to the log.
        additions: What a session of our own gets besides its profile.

    Raises:
        JavaError: Java is missing or too old.
        InstallationError: Spark or the workers' Python are not of one version, or packages are missing.
        EngineError: the server cannot be reached.
    """
    site = site or choose_site(os.environ)
    if not show_all:
        silence_query_loggers()  # the suite says it in one sentence
    # What a log of everything shows, nobody's settings may hide.
    log_config = None if show_all else log_config
    existing = SparkSession.getActiveSession() if site.name == "existing" else None
    opening: AbstractContextManager[Engine]
    if site.remote is not None:
        opening = _on_server(site, site.remote, profile, show_all=show_all)
    elif existing is not None and is_connect(existing):
        opening = _lent_by_server(existing, profile)
    else:
        opening = _classic(
            app_name, profile, site, log_config, existing, show_all=show_all, additions=additions
        )
    with opening as engine:
        yield engine


@contextmanager
def _classic(
    app_name: str,
    profile: Profile,
    site: Site,
    log_config: Path | None,
    existing: SparkSession | None,
    *,
    show_all: bool,
    additions: Sequence[Addition],
) -> Iterator[Engine]:
    with ExitStack() as stack:
        stack.enter_context(local.worker_python(profile.value("spark.pyspark.python")))
        engine: Engine
        if site.name == "local":
            own = local.own_engine(
                app_name, profile, log_config=log_config, show_all=show_all, additions=additions
            )
            engine = stack.enter_context(own)
        else:
            spark = existing or local.submitted_session(app_name, log_config=log_config)
            owned = local.given_keys(spark)
            not_applied = stack.enter_context(applied(spark, profile.settings.values(), owned=owned))
            engine = local.ClassicEngine(spark, site.name, not_applied)
        local.ship_package(engine.spark)
        yield engine


@contextmanager
def _on_server(site: Site, remote: Remote, profile: Profile, *, show_all: bool) -> Iterator[Engine]:
    with connect.server_session(remote, show_all=show_all) as spark:
        asked = dict(profile.settings)
        for setting in site.submitted:
            if setting.key not in asked or asked[setting.key].layer != "flag":
                asked[setting.key] = setting
        not_applied = apply_settings(spark, asked.values())  # the session ends with the run
        connect.ship_package(spark)
        yield connect.ConnectEngine(spark, site.name, not_applied)


@contextmanager
def _lent_by_server(spark: SparkSession, profile: Profile) -> Iterator[Engine]:
    owned = frozenset(spark.conf.getAll)
    asked = profile.settings.values()
    with connect.quiet_client(), applied(spark, asked, owned=owned) as not_applied:
        connect.ship_package(spark)
        yield connect.ConnectEngine(spark, "existing", not_applied)


def _submitted(environ: Mapping[str, str]) -> dict[str, str]:
    """What spark-submit was given for a server's session; empty when it has a session of its own."""
    given: dict[str, str] = {}
    for index in range(int(environ.get("PYSPARK_REMOTE_INIT_CONF_LEN", "0"))):
        given |= json.loads(environ[f"PYSPARK_REMOTE_INIT_CONF_{index}"])
    return given


def _served(remote: Remote, profile: str | None, submitted: Mapping[str, str], *, by: str) -> Site:
    if profile is not None and profile.partition("+")[0] not in _SITES_OF_A_SERVER:
        raise UsageError(
            "flag",
            "--profile",
            expected=f"none beside {by}, or {' or '.join(_SITES_OF_A_SERVER)}",
            got=f"`{profile}`, which is another site",
            hint="a server brings its own site; --conf sets what a session of it takes",
        )
    settings = tuple(
        Setting(key, value, "submit", "spark-submit")
        for key, value in submitted.items()
        if key.startswith("spark.sql.")
    )
    return Site("connect", profile or BASE, remote, settings)


def _second_session(whose: str) -> UsageError:
    return UsageError(
        "flag",
        "--remote",
        expected="no other session",
        got=whose,
        hint="PySpark has one kind of session in a process: run the job with saltpan run",
    )
