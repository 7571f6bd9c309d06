"""What a session of our own is started with: profile, additions and flags, in that order. Without a JVM."""

from __future__ import annotations

import contextlib
import signal
import socket
import socketserver
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from pyspark import java_gateway
from pyspark.core import context

from common.engine import local_session
from common.engine.handle import Addition
from common.settings.profiles import Profile, Setting

OPTIONS = "spark.driver.extraJavaOptions"


class Builder:
    """Takes settings as Spark's does, and reports them as a session would; notes what happens when."""

    def __init__(self) -> None:
        self.conf: dict[str, str] = {}
        self.events: list[str] = []

    def appName(self, name: str) -> Self:  # noqa: N802  Spark's name
        return self.config("spark.app.name", name)

    def config(self, key: str, value: str) -> Self:
        self.conf[key] = value
        return self

    def getOrCreate(self) -> Any:  # noqa: N802  Spark's name
        self.events.append("created")
        reported = {**self.conf, "spark.master": "local[2]"}
        return SimpleNamespace(
            conf=SimpleNamespace(getAll=reported), stop=lambda: self.events.append("stopped")
        )


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    made = Builder()
    monkeypatch.setattr(local_session, "SparkSession", SimpleNamespace(builder=made))
    monkeypatch.setattr(local_session, "prepare_installation", lambda environ, **_: None)
    monkeypatch.setattr(local_session, "captured_stderr", lambda relay: contextlib.nullcontext())
    return made


def opened(profile: Profile, *additions: Addition, log_config: Path | None = None) -> Any:
    return local_session.own_engine(
        "job", profile, log_config=log_config, show_all=False, additions=additions
    )


def profile(**layers: dict[str, str]) -> Profile:
    """Settings by layer."""
    settings = {
        key: Setting(key, value, layer, "test")
        for layer, given in layers.items()
        for key, value in given.items()
    }
    return Profile("local", settings)


def test_additions_win_over_the_site_and_lose_to_flags(builder: Builder) -> None:
    asked = profile(
        local={"spark.driver.memory": "2g", "spark.locality.wait": "0s"}, flag={"spark.plugins": "mine"}
    )
    fast = Addition({"spark.driver.memory": "1g", "spark.plugins": "theirs", "spark.shuffle.x": "1"})
    with opened(asked, fast):
        pass
    assert builder.conf["spark.driver.memory"] == "1g"
    assert builder.conf["spark.locality.wait"] == "0s"
    assert builder.conf["spark.plugins"] == "mine"
    assert builder.conf["spark.shuffle.x"] == "1"


def test_what_the_profile_says_to_the_jvm_comes_last_and_wins(builder: Builder, tmp_path: Path) -> None:
    asked = profile(flag={OPTIONS: "-Duser.timezone=Asia/Tokyo"})
    with opened(
        asked, Addition(java_options=("-XX:+UseSerialGC", "-Xshare:auto")), log_config=tmp_path / "l"
    ):
        pass
    log, *others = builder.conf[OPTIONS].split()
    assert log == f"-Dlog4j2.configurationFile=file://{tmp_path}/l"
    assert others == ["-Duser.timezone=UTC", "-XX:+UseSerialGC", "-Xshare:auto", "-Duser.timezone=Asia/Tokyo"]


def test_additions_look_after_the_start_and_clean_up_after_the_stop(builder: Builder) -> None:
    events = builder.events
    addition = Addition(opened=lambda spark: events.append("opened"), ended=lambda: events.append("ended"))
    with pytest.raises(ZeroDivisionError), opened(profile(), addition):
        events.append("used")
        raise ZeroDivisionError
    assert events == ["created", "opened", "used", "stopped", "ended"]


def test_additions_clean_up_when_the_start_fails(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(builder, "getOrCreate", fails)
    with (
        pytest.raises(ZeroDivisionError),
        opened(profile(), Addition(ended=lambda: builder.events.append("ended"))),
    ):
        pass
    assert builder.events == ["ended"]


def test_pyspark_does_not_take_the_handler_of_ctrl_c(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = builder.getOrCreate

    def takes() -> Any:
        context.signal.signal(context.signal.SIGINT, signal.SIG_IGN)
        return create()

    monkeypatch.setattr(builder, "getOrCreate", takes)
    former = signal.getsignal(signal.SIGINT)
    with opened(profile()):
        assert signal.getsignal(signal.SIGINT) is former
    assert context.signal is signal


def test_a_jvm_whose_start_is_interrupted_goes(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[subprocess.Popen[bytes]] = []

    def launches(error: type[BaseException]) -> None:
        launched.append(java_gateway.Popen(["sleep", "60"]))
        raise error

    monkeypatch.setattr(builder, "getOrCreate", lambda: launches(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt), opened(profile()):
        pass
    assert launched[0].wait(timeout=10) == -signal.SIGKILL
    assert java_gateway.Popen is subprocess.Popen

    # Another failure leaves it: whoever starts a session again in this process will use it.
    monkeypatch.setattr(builder, "getOrCreate", lambda: launches(ZeroDivisionError))
    with pytest.raises(ZeroDivisionError), opened(profile()):
        pass
    assert launched[1].poll() is None
    launched[1].kill()
    launched[1].wait()


def test_what_spark_reports_otherwise_is_told(builder: Builder) -> None:
    with opened(profile(local={"spark.master": "local[*]", OPTIONS: "-Da=b"})) as engine:
        told = [(item.key, item.asked, item.effective) for item in engine.not_applied]
    assert told == [("spark.master", "local[*]", "local[2]")]


def test_an_environment_that_asks_for_connect_does_not_change_the_kind(builder: Builder) -> None:
    with opened(profile()):
        pass
    assert builder.conf["spark.api.mode"] == "classic"


@pytest.mark.parametrize(
    ("given", "daemon"),
    [
        ({}, "ours"),
        ({"spark.master": "local[2]"}, "ours"),
        ({"spark.master": "spark://cluster:7077"}, None),
        ({"spark.python.daemon.module": "theirs"}, "theirs"),
    ],
)
def test_workers_of_this_machine_have_our_daemon_unless_another_is_asked_for(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], daemon: str | None
) -> None:
    key = "spark.python.daemon.module"
    monkeypatch.setattr(local_session, "daemon_settings", lambda environ: {key: "ours"})
    with opened(profile(flag=given)):
        assert builder.conf.get(key) == daemon


def test_a_connection_that_breaks_is_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    class Breaks(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            raise EOFError

    with socketserver.TCPServer(("127.0.0.1", 0), Breaks) as server:
        local_session._without_tracebacks(server)
        with socket.create_connection(server.server_address[:2]):  # type: ignore[arg-type]
            server.handle_request()
    assert capfd.readouterr().err == ""
    local_session._without_tracebacks(None)
