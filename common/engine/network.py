"""What Spark asks of the network on any machine: the host's own name, and ports on its addresses."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from common.core.errors import EngineError
from common.engine.checked import Checked

_LOOPBACK = "127.0.0.1"
_LOCAL_HINT = f"export SPARK_LOCAL_IP={_LOOPBACK} (for a run on this machine)"


def check_host_name(environ: Mapping[str, str]) -> Checked:
    """Whether the address that Spark takes for its own can be found.

    Spark asks Java for it as soon as there is a SparkConf, whatever spark.driver.host says: by the name
    in SPARK_LOCAL_IP, else by the host's. With SPARK_LOCAL_HOSTNAME it does not ask.

    Raises:
        EngineError: the name has no address.
    """
    if environ.get("SPARK_LOCAL_HOSTNAME"):
        return Checked("host name", "ok", f"{environ['SPARK_LOCAL_HOSTNAME']}, as SPARK_LOCAL_HOSTNAME says")
    given = environ.get("SPARK_LOCAL_IP")
    name = socket.gethostname() if given is None else given or _LOOPBACK  # Java takes no name for loopback
    address = _address(name)
    if address is None and given is None:
        hint = f"{_LOCAL_HINT}, or add the line `{_LOOPBACK} {name}` to /etc/hosts"
        raise EngineError("host name", name, expected="one with an address", got="none", hint=hint)
    if address is None:
        hint = f"set it to an address of this machine, such as {_LOOPBACK}"
        expected = "an address, or a name that has one"
        raise EngineError("variable", "SPARK_LOCAL_IP", expected=expected, got=f"`{name}`", hint=hint)
    whose = " from SPARK_LOCAL_IP" if given is not None else ""
    return Checked("host name", "ok", f"{name} is {address}{whose}" if name != address else f"{name}{whose}")


def check_ports(environ: Mapping[str, str], settings: Mapping[str, str]) -> Checked:
    """Whether a port can be opened where Python and Java talk, and where the driver listens.

    Args:
        environ: SPARK_LOCAL_IP.
        settings: Spark's, of which spark.driver.bindAddress and spark.driver.host say where it listens.

    Raises:
        EngineError: none can be opened: the address is not this machine's, or sockets are not allowed.
    """
    problem = _opened(_LOOPBACK)
    if problem:
        hint = "bring the loopback interface up (`ip link set lo up`), or leave the sandbox that forbids it"
        raise EngineError("port", _LOOPBACK, expected="one that can be opened", got=problem, hint=hint)
    named = [settings.get(key) for key in ("spark.driver.bindAddress", "spark.driver.host")]
    named += [environ.get(key) for key in ("SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP")]
    name = next(filter(None, named), socket.gethostname())
    address = _address(name)
    problem = _opened(address) if address else "a name without an address"
    if problem and (address or name in named[:3]):  # the others are what `check_host_name` looks at
        expected = "an address of this machine, where the driver can listen"
        got = f"{address}, {problem}" if address and address != name else problem
        raise EngineError("address of the driver", name, expected=expected, got=got, hint=_LOCAL_HINT)
    places = dict.fromkeys(place for place in (_LOOPBACK, address) if place)
    return Checked("ports", "ok", f"can be opened on {' and '.join(places)}")


def _address(name: str) -> str | None:
    """The address that Java would take: the first of version 4, else the first."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # a label that is too long is no name at all
        return None
    found.sort(key=lambda each: each[0] != socket.AF_INET)
    return str(found[0][4][0]) if found else None


def _opened(address: str) -> str | None:
    """What keeps a port from being opened at this address, if anything does."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as opened:
            opened.bind((address, 0))
            opened.listen(1)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None
