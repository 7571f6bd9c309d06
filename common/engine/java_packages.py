"""The command that installs a Java on this kind of system."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

_RELEASE = Path("/etc/os-release")
_ELSEWHERE = "Temurin 17 or 21 from adoptium.net"


def install_command() -> str:
    """What the user types to get a Java that fits; names Adoptium where no package manager is known."""
    if platform.system() == "Darwin":
        return "brew install openjdk@17"
    try:
        text = _RELEASE.read_text("utf-8", errors="replace")
    except OSError:
        return _ELSEWHERE
    command = command_for(text)
    return command if command == _ELSEWHERE or os.geteuid() == 0 else f"sudo {command}"


def command_for(os_release: str) -> str:
    """The command for the system that this os-release file describes, to be run by root.

    >>> command_for('ID=debian\\nVERSION_ID="12"')
    'apt-get install openjdk-17-jre-headless'
    """
    fields = dict(re.findall(r"^(\w+)=\"?([^\"\n]*)\"?$", os_release, re.MULTILINE))
    own = fields.get("ID", "")
    number = re.match(r"\d+", fields.get("VERSION_ID", ""))
    version = int(number[0]) if number else 0
    for name in (own, *fields.get("ID_LIKE", "").split()):
        command = _by_name(name, version if name == own else 0)
        if command:
            return command
    return _ELSEWHERE


def _by_name(name: str, version: int) -> str | None:
    newer = {"debian": 13, "fedora": 42, "rhel": 10, "centos": 10, "rocky": 10, "almalinux": 10}
    # Where 17 has left the distribution, 21 is there.
    java = 21 if version >= newer.get(name, 1000) else 17
    match name:
        case "debian" | "ubuntu":
            return f"apt-get install openjdk-{java}-jre-headless"
        case "fedora" | "rhel" | "centos" | "rocky" | "almalinux":
            tool = "yum" if 0 < version < 8 else "dnf"
            return f"{tool} install java-{java}-openjdk-headless"
        case "amzn":
            return f"{'yum' if version == 2 else 'dnf'} install java-17-amazon-corretto-headless"
        case "alpine":
            return "apk add openjdk17-jre-headless"
        case "arch":
            return "pacman -S jre17-openjdk-headless"
    return "zypper install java-17-openjdk-headless" if name in {"suse", "opensuse", "sles"} else None
