"""Paths on a Spark Connect server: inputs that only it can look at, outputs that can be published there."""

from __future__ import annotations

from dataclasses import replace

from common.core.errors import UsageError
from common.engine.listing import TABLE_PREFIX, Listing, list_input
from common.engine.storage import is_local_path, scheme_of
from common.settings.inputs import InputRequest
from common.settings.remote import Remote

# A scheme that no storage of ours has: a plain path is one of the server's default file system.
_ELSEWHERE = "server:"


def list_on_server(request: InputRequest) -> Listing:
    """An input of a server on another machine: the listing names the checks that cannot be made from here.

    Raises:
        UsageError: as `list_input` for what the paths, the schema and the options are by themselves.
    """
    there = tuple(_there(path) for path in request.paths)
    return replace(list_input(replace(request, paths=there)), request=request)


def _there(path: str) -> str:
    return path if not path or path.startswith(TABLE_PREFIX) else f"{_ELSEWHERE}/{path}"


def check_server_output(output: str | None, *, remote: Remote) -> None:
    """Refuse an output that could not be staged and renamed from here.

    Raises:
        UsageError: the output is on another machine's disk, or on a remote file system.
    """
    if output is None or (is_local_path(output) and remote.is_here):
        return
    if is_local_path(output):
        raise UsageError(
            "output",
            output,
            expected=f"a folder that {remote.shown} and this machine share",
            got="a local path, and a server on another machine",
            hint="leave --output out to get the rows here, or run the job where the server runs",
        )
    raise UsageError(
        "output",
        output,
        expected="a local folder of the server's machine",
        got=f"a path on {scheme_of(output)}, where nothing can be renamed through Spark Connect",
        hint="run it with spark-submit, which publishes there",
    )
