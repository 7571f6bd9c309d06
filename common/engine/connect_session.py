"""Spark Connect sessions: a server reached in seconds, or an error in one sentence; released at the end."""

from __future__ import annotations

import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pyspark
from pyspark.sql import SparkSession

from common.core.errors import EngineError, InstallationError, SuiteError
from common.engine.handle import Engine
from common.engine.package import worker_package
from common.engine.plans import read_plan
from common.settings.engines import EngineKind, release_of
from common.settings.remote import Remote

CONTACT_SECONDS = 5.0
_MODE, _SUBMITTED = "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_REMOTE_INIT_CONF_LEN"
_INSTALL = "pip install 'saltpan[connect]'"
# Of gRPC's text only the innermost reason is news.
_DETAILS = re.compile(r'details = "(?P<details>(?:[^"\\]|\\.)*)"')
_LAST_ERROR = re.compile(
    r".*(?:last error: \w+: (?:ipv[46]:\S+: )?(?:Failed to connect to remote host: )?|lookup error:)"
    r"(?P<reason>.*)",
    re.DOTALL,
)

_LOG = logging.getLogger("saltpan.engine")


@dataclass(frozen=True)
class ConnectEngine(Engine):
    """A session of a server. What the server does not tell its clients is None or 0."""

    kind: ClassVar[EngineKind] = "connect"

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of all that takes part in an answer; the server's Java is not told without a query."""
        return {**super().versions, "client": pyspark.__version__}

    @cached_property
    def application_id(self) -> str | None:
        """The server's id of its application, which all its sessions share."""
        return self.spark.conf.getAll.get("spark.app.id")

    @property
    def ui_address(self) -> str | None:
        """None: the server knows, its clients do not."""
        return None

    @cached_property
    def core_count(self) -> int:
        """Task slots: into as many parts Spark plans to cut a range of numbers. No job."""
        ranges = read_plan(self.spark.range(1)).of("Range")
        found = re.search(r"splits=(?:Some\()?(\d+)", " ".join(node.detail for node in ranges))
        return int(found[1]) if found else 0

    def describe(self, text: str) -> None:
        """Tag the work that follows; the server shows the tag beside its operations."""
        self.spark.clearTags()
        self.spark.addTag(text.replace(",", ";"))

    def cancel(self) -> None:
        """Ask the server to stop all that runs in this session; harmless when it is gone."""
        try:
            with _briefly(self.spark):
                self.spark.interruptAll()
        except Exception as error:  # noqa: BLE001  any way in which a server is gone is the aim
            _LOG.debug("cancelling: %s", error)


@contextmanager
def server_session(remote: Remote, *, show_all: bool) -> Iterator[SparkSession]:
    """A session of the server, released at the end; this process may then have one of another kind.

    Args:
        remote: The server.
        show_all: Let gRPC say on stderr what it does.

    Raises:
        InstallationError: the Connect client's packages are not installed.
        EngineError: the server cannot be reached, or does not take the session.
    """
    if not show_all:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it prints each failed handshake
    check_client()
    with _process_mode(), quiet_client():
        spark = SparkSession.builder.remote(remote.url).getOrCreate()
        try:
            _contact(spark, remote)
            _warn_of_versions(spark, remote)
            yield spark
        finally:
            with _briefly(spark):
                spark.stop()


def check_client() -> None:
    """Find the packages that PySpark's Connect client needs.

    Raises:
        InstallationError: one is missing or too old.
    """
    try:
        from pyspark.sql.connect.client import SparkConnectClient  # noqa: F401
    except ImportError as error:
        reason = " ".join(re.sub(r"^\[\w+\] ", "", str(error)).split()).rstrip(".")
        raise InstallationError(
            "package",
            "pyspark[connect]",
            expected="the packages of the Spark Connect client",
            got=reason[:1].lower() + reason[1:],
            hint=f"run `{_INSTALL}`",
        ) from error


def ship_package(spark: SparkSession) -> None:
    """Make `common` importable on the server's workers, for this session only."""
    spark.addArtifacts(str(worker_package()), pyfile=True)


@contextmanager
def quiet_client() -> Iterator[None]:
    """Within: the client does not warn of a ranking in one task; the decision says it, with the rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="WARN WindowExpression: No Partition Defined")
        yield


@contextmanager
def _process_mode() -> Iterator[None]:
    """PySpark remembers in the environment that the process is bound to Connect; it is unbound again.

    What spark-submit was given for the session is applied with the profile, once the server has answered:
    PySpark would do it before, and ask for ten minutes.
    """
    former = {name: os.environ.get(name) for name in (_MODE, _SUBMITTED)}
    os.environ.pop(_SUBMITTED, None)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _contact(spark: SparkSession, remote: Remote) -> None:
    """Ask the server for its version, in a thread: gRPC sets no limit to a server that only listens."""
    problems: list[Exception] = []

    def ask() -> None:
        try:
            _ = spark.version  # kept by the session
        except Exception as error:  # noqa: BLE001  told by the thread that waits
            problems.append(error)

    with _briefly(spark):
        asking = threading.Thread(target=ask, name="saltpan-contact", daemon=True)
        asking.start()
        asking.join(CONTACT_SECONDS)
        if asking.is_alive():
            _client(spark).close()  # ends the call
            raise _unreachable(remote, f"no answer in {CONTACT_SECONDS:.0f} seconds")
    if problems:
        _client(spark).close()
        raise _refusal(remote, problems[0]) from problems[0]


def _refusal(remote: Remote, error: Exception) -> SuiteError:
    text = str(error)
    details = _DETAILS.search(text)
    reason = details["details"] if details else text.strip().splitlines()[0] if text.strip() else ""
    last = _LAST_ERROR.match(reason)
    reason = " ".join((last["reason"] if last else reason).split()).rstrip(".])")
    status = str(getattr(error, "getGrpcStatusCode", lambda: "")()).rpartition(".")[2]
    if status == "UNAUTHENTICATED":
        hint = "put its token into SPARK_CONNECT_AUTHENTICATE_TOKEN, or into the address as `token`"
        return EngineError("server", remote.shown, expected="a token that it accepts", got=reason, hint=hint)
    return _unreachable(remote, reason or type(error).__name__)


def _unreachable(remote: Remote, got: str) -> EngineError:
    hint = "check the address and that the server runs"
    if "Tls handshake" in got or "ssl" in got.lower():
        got = "one that does not speak TLS"
        hint = "without TLS a server takes no use_ssl, and a token only from localhost"
    elif "HTTP/2" in got or "http2" in got:
        got = f"something else ({got})"
    return EngineError(
        "server", remote.shown, expected="a Spark Connect server that answers", got=got, hint=hint
    )


def _warn_of_versions(spark: SparkSession, remote: Remote) -> None:
    server, client = spark.version, pyspark.__version__
    if release_of(server)[:2] != release_of(client)[:2]:
        _LOG.warning("%s runs Spark %s, this client is PySpark %s", remote.shown, server, client)


@contextmanager
def _briefly(spark: SparkSession) -> Iterator[None]:
    """Within: calls are tried again for a second or two; PySpark's ten minutes are for queries."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client = _client(spark)
    former = client.get_retry_policies()
    client.set_retry_policies(
        [DefaultPolicy(max_retries=3, initial_backoff=100, backoff_multiplier=2.0, max_backoff=1000)]
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that retries were exceeded; the error says it
            yield
    finally:
        client.set_retry_policies(former)


def _client(spark: SparkSession) -> Any:
    """The session's gRPC client, which the common type of both kinds of session does not have."""
    session: Any = spark
    return session.client
