"""The address of a Spark Connect server: sc://HOST:PORT, with parameters after a slash."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from common.core.errors import UsageError
from common.core.masking import mask_text

SCHEME = "sc://"
DEFAULT_PORT = 15002


@dataclass(frozen=True)
class Remote:
    """A Spark Connect server, as the user named it.

    Attributes:
        url: The whole address. Its parameters may hold a token, so it is never shown.
        host: The server's name or number.
        port: Its port.
        parameters: The names of the parameters that the address has.
    """

    url: str = field(repr=False)
    host: str
    port: int
    parameters: frozenset[str] = frozenset()

    @property
    def shown(self) -> str:
        """The address without its parameters, as it may be shown.

        >>> parse_remote("sc://[::1]/;token=hunter2").shown
        'sc://[::1]:15002'
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{host}:{self.port}"

    @property
    def is_here(self) -> bool:
        """True when the address is this machine's own: paths then mean the same on both sides.

        >>> parse_remote("sc://127.0.0.1:15002").is_here, parse_remote("sc://spark.example.org").is_here
        (True, False)
        """
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_remote(text: str, *, by: str = "--remote") -> Remote:
    """Understand an address.

    Args:
        text: sc://HOST[:PORT][/;NAME=VALUE;…].
        by: What named it: a flag or a variable.

    Raises:
        UsageError: it is not such an address.
    """
    if not text.startswith(SCHEME):
        got = f"`{mask_text(text)}`" if text else "nothing"
        raise UsageError("setting", by, expected=f"{SCHEME}HOST:PORT", got=got)
    try:
        parts = urlsplit("http" + text.removeprefix("sc"))
        port = DEFAULT_PORT if parts.port is None else parts.port
    except ValueError:
        raise _refused(by, got="a host or a port that cannot be one") from None
    path, _, rest = parts.path.partition(";")
    pairs = [pair.split("=") for pair in rest.split(";")] if rest else []
    why = _what_is_wrong(parts, path, pairs)
    if why:
        raise _refused(by, got=why)
    return Remote(text, parts.hostname or "", port, frozenset(pair[0] for pair in pairs))


def check_remote(text: str | None) -> str | None:
    """The text itself, once it is understood; for the settings model."""
    if text is not None:
        parse_remote(text)
    return text


def _what_is_wrong(parts: SplitResult, path: str, pairs: Sequence[Sequence[str]]) -> str | None:
    """Why Spark would refuse the address, or not do what it says."""
    if parts.username is not None:
        return "a user before the host"
    if not re.fullmatch(r"[\w.:%-]+", parts.hostname or "") or parts.port == 0:
        return "a host or a port that cannot be one"
    if path not in ("", "/"):
        return "a path after the host"
    if parts.query or parts.fragment or any("/" in text for pair in pairs for text in pair):
        return "a `/`, `?` or `#` in a parameter, where it is written %2F, %3F or %23"
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        return "a parameter that is not NAME=VALUE; an `=` in a value is written %3D"
    return None


def _refused(by: str, *, got: str) -> UsageError:
    # What was typed is not repeated: it may hold a token, at any place.
    hint = f"parameters come after a slash, as in {SCHEME}HOST:PORT/;use_ssl=true"
    return UsageError("setting", by, expected=f"{SCHEME}HOST:PORT", got=got, hint=hint)
