"""`saltpan doctor start`: whether Spark would start here, and what to do where it would not."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Literal

from common.core import console
from common.core.errors import ExitCode, UsageError
from common.engine.checked import Checked, checked
from common.engine.rapids_preflight import cpu_sentence, prepare_rapids
from common.engine.start_checks import start_checks
from common.settings.profiles import Profile, conf_folder, load_profile

COLUMNS = ("check", "state", "found", "hint")
_WIDTH = 100


def doctor_start(
    profile: str = "local",
    *,
    environ: Mapping[str, str],
    folder: Path | None,
    conf_dir: str | None = None,
    style: Literal["table", "json"] = "table",
) -> int:
    """Print what each start-up check found, and what to do; no JVM of Spark's is started.

    Args:
        profile: SITE[+ACCELERATOR], whose settings say where Spark listens and spills and which Python
            workers run.
        environ: The environment that Spark would be started with.
        folder: The current folder; None when it is gone.
        conf_dir: Folder of the profiles.
        style: "json" prints one object a line.

    Returns:
        0 when nothing is an error, else the code of errors of the engine and the machine.

    Raises:
        UsageError: no such profile, or one whose Spark does not start here.
    """
    place = conf_folder(conf_dir, environ=environ)
    loaded = load_profile(profile, folder=place)
    if loaded.site == "connect":
        expected = "a site whose Spark starts here: local, standalone, yarn or k8s"
        hint = "a job with --remote says at once whether its server answers"
        raise UsageError("flag", "--profile", expected=expected, got="`connect`", hint=hint)
    settings = {key: setting.value for key, setting in loaded.settings.items()}
    found = start_checks(environ, folder=folder, settings=settings, site=loaded.site)
    if loaded.accelerator == "rapids":
        found.append(checked("RAPIDS", lambda: _rapids(loaded, folder=place, environ=environ)))
    if style == "json":
        console.print_json(COLUMNS, map(astuple, found))
    else:
        console.print_text(in_lines(found))
    return ExitCode.ENGINE if any(each.state == "error" for each in found) else ExitCode.OK


def in_lines(found: Iterable[Checked]) -> str:
    """The checks as a table of 100 columns, what to do below what was found, and a line that sums up.

    >>> print(in_lines([Checked("Java", "ok", "Java 17"), Checked("ports", "error", "none", "open one")]))
    check  state  what was found, and what to do
    Java   ok     Java 17
    ports  ERROR  none
                  -> open one
    <BLANKLINE>
    1 error: Spark would not start, or not answer rightly
    """
    rows = list(found)
    states = {each.name: "ERROR" if each.state == "error" else each.state for each in rows}
    widths = [max(map(len, ["check", *states])), max(map(len, ["state", *states.values()]))]
    lines = [_row("check", "state", "what was found, and what to do", widths)]
    for each in rows:
        lines.append(_row(each.name, states[each.name], each.sentence, widths))
        if each.hint:
            lines.append(_row("", "", f"-> {each.hint}", widths))
    return "\n".join([*lines, "", _summary(rows)])


def _row(name: str, state: str, text: str, widths: list[int]) -> str:
    start = f"{name:<{widths[0]}}  {state:<{widths[1]}}  "
    return textwrap.fill(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * (len(start) + 3 * text.startswith("-> ")),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(rows: list[Checked]) -> str:
    errors, warnings = (sum(each.state == state for each in rows) for state in ("error", "warning"))
    if errors:
        return f"{_counted(errors, 'error')}: Spark would not start, or not answer rightly"
    return "Spark can start here" + (f", with {_counted(warnings, 'warning')}" if warnings else "")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"


def _rapids(profile: Profile, *, folder: Path, environ: Mapping[str, str]) -> Checked:
    """What RAPIDS lacks here; a warning, since the run goes on on the CPU."""
    ready = prepare_rapids(profile, folder=folder, environ=environ)
    if ready.missing:
        return Checked("RAPIDS", "warning", cpu_sentence(ready.missing))
    if ready.warnings:
        return Checked("RAPIDS", "warning", "; ".join(ready.warnings))
    return Checked("RAPIDS", "ok", "all that it needs is here, as far as this machine can tell")
