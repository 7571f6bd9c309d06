from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from common.core.logs import bind_run, configure_logs, logger


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root, py4j = logging.getLogger("saltpan"), logging.getLogger("py4j")
    before = list(root.handlers), root.level, root.propagate, py4j.level
    yield
    root.handlers[:], root.level, root.propagate = before[0], before[1], before[2]
    root.setLevel(before[1])
    py4j.setLevel(before[3])


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_text_shows_the_level_only_when_it_is_not_info() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    logger("runs").info("read %d rows", 3)
    logger().warning("slow")
    assert stream.getvalue() == "read 3 rows\nWARNING: slow\n"


@pytest.mark.parametrize(
    ("verbosity", "expected"),
    [(-1, ["w"]), (0, ["i", "w"]), (1, ["d", "i", "w"]), (2, ["d", "i", "w"])],
)
def test_verbosity(verbosity: int, expected: list[str]) -> None:
    stream = io.StringIO()
    configure_logs(format="json", verbosity=verbosity, stream=stream)
    log = logger("x")
    log.debug("d")
    log.info("i")
    log.warning("w")
    assert [line["message"] for line in lines(stream)] == expected


def test_json_is_one_object_a_line_with_the_run_and_extra_fields() -> None:
    stream = io.StringIO()
    configure_logs(format="json", stream=stream, run_id="r1")
    logger("runs").info("two\nlines é", extra={"rows": 3, "share": float("nan"), "paths": ["a"]})
    (line,) = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(line.pop("time")))
    assert line == {
        "level": "INFO",
        "logger": "saltpan.runs",
        "message": "two\nlines é",
        "run_id": "r1",
        "rows": 3,
        "share": "NaN",
        "paths": ["a"],
    }


def test_a_masked_line_is_still_json() -> None:
    stream = io.StringIO()
    configure_logs(format="json", stream=stream)
    extra = {"credentials": {"user": "hunter2"}, "token": None, "password": True, "secret": [1]}
    logger().info('{"password": {"a": "hunter2"}}', extra=extra)
    (line,) = lines(stream)
    assert (line["credentials"], line["token"], line["password"]) == ({"user": "*****"}, None, True)
    assert line["secret"] == ["*****"]
    assert "hunter2" not in stream.getvalue()


def test_the_run_can_be_named_later_and_an_extra_field_cannot_replace_ours() -> None:
    stream = io.StringIO()
    configure_logs(format="json", stream=stream)
    bind_run("r2")
    logger().info("x", extra={"run_id": "mine", "level": "mine"})
    (line,) = lines(stream)
    assert (line["run_id"], line["run_id_"], line["level"], line["level_"]) == ("r2", "mine", "INFO", "mine")


@pytest.mark.parametrize("style", ["text", "json"])
def test_no_secret_passes(style: str) -> None:
    stream = io.StringIO()
    configure_logs(format=style, stream=stream)  # type: ignore[arg-type]
    log = logger("x")
    log.info("jdbc:x://h;password=hunter2;a=b %s", "token=hunter2")
    log.info(
        "extra", extra={"db_password": "hunter2", "conf": {"api.key": "hunter2"}, "url": "s3a://a:hunter2@b"}
    )
    log.info("%d fits not", "token=hunter2")
    try:
        raise ValueError("no route to s3a://me:hunter2@bucket") from KeyError("secret=hunter2")
    except ValueError:
        log.exception("failed", stack_info=True)
    text = stream.getvalue()
    assert "hunter2" not in text
    assert "no route to s3a://me:*****@bucket" in text
    assert "Traceback" in text
    assert "fits not" in text


def test_configuring_again_replaces_and_does_not_add() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logs(stream=first)
    configure_logs(stream=first)
    configure_logs(stream=second, format="json")
    logger().info("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1


def test_a_foreign_handler_stays_and_the_root_logger_stays_silent(capsys: pytest.CaptureFixture[str]) -> None:
    kept = logging.NullHandler()
    logging.getLogger("saltpan").addHandler(kept)
    configure_logs(stream=io.StringIO())
    assert kept in logging.getLogger("saltpan").handlers
    root_stream = io.StringIO()
    root_handler = logging.StreamHandler(root_stream)
    logging.getLogger().addHandler(root_handler)
    try:
        logger().warning("x")
    finally:
        logging.getLogger().removeHandler(root_handler)
    assert root_stream.getvalue() == ""


def test_the_stream_is_the_stderr_of_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    logger().info("to stderr")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "to stderr\n")


def test_py4j_which_logs_what_it_also_raises_is_silent() -> None:
    configure_logs(stream=io.StringIO(), verbosity=2)
    assert not logging.getLogger("py4j.clientserver").isEnabledFor(logging.CRITICAL)
    root = logging.getLogger()
    for path, heard in {"/x/site-packages/py4j/java_gateway.py": False, "/x/mine.py": True}.items():
        record = logging.LogRecord(
            "root", logging.ERROR, path, 1, "Exception while sending command.", (), None
        )
        assert bool(root.filter(record)) == heard, path


def test_control_characters_do_not_reach_the_terminal() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    logger().info("path a\x1b[31m\rb\tc")
    assert stream.getvalue() == "path a\\x1b[31m\\rb\tc\n"


def test_a_closed_stream_does_not_stop_the_run() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    stream.close()
    logger().info("nobody hears this")
    assert stream.closed
