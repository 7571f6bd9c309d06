"""Spark configuration in layers, base < site < accelerator < flag, each value with its origin.

A layer is a file in spark-defaults form (`key value`, `key=value`, `# comment`). The same key twice inside a
layer is an error; a later layer wins over an earlier one. What an accelerator needs on one site only is in
`ACCELERATOR@SITE.conf`, if there is such a file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from common.core.errors import ConfigurationError, UnknownNameError, did_you_mean

BASE = "base"
SUFFIX = ".conf"
ACCELERATORS = ("comet", "rapids")
# They stand where an accelerator does and bring no layer: `auto` is for the engine to resolve.
_NO_LAYER = ("none", "auto")


@dataclass(frozen=True)
class Setting:
    """One Spark setting: its value, the layer it came from, and where it is written."""

    key: str
    value: str
    layer: str
    origin: str


@dataclass(frozen=True)
class Profile:
    """The composed configuration.

    Attributes:
        name: As the user named it ("local", "yarn+comet"), or "base" when no site applies.
        settings: Key to the winning setting.
    """

    name: str
    settings: Mapping[str, Setting]

    def value(self, key: str, default: str = "") -> str:
        """The value of `key`, or `default`."""
        setting = self.settings.get(key)
        return setting.value if setting else default

    @property
    def site(self) -> str:
        """The part of the name before the plus: "yarn" of "yarn+rapids"."""
        return self.name.partition("+")[0]

    @property
    def accelerator(self) -> str:
        """The part of the name after the plus, or "none"."""
        return self.name.partition("+")[2] or "none"

    def with_settings(self, settings: Iterable[Setting], *, without: Iterable[str] = ()) -> Profile:
        """The same profile with these settings in place of its own, and without these keys."""
        merged = {**self.settings, **{setting.key: setting for setting in settings}}
        dropped = frozenset(without)
        return Profile(self.name, {key: value for key, value in merged.items() if key not in dropped})


def load_profile(name: str, *, folder: Path, overrides: Mapping[str, str] | None = None) -> Profile:
    """Compose base, the layers of `name` (SITE[+ACCELERATOR]) and the flags.

    Raises:
        UnknownNameError: there is no such site or accelerator.
        ConfigurationError: a layer cannot be read, or holds a key twice.
    """
    layers = [_layer(layer, folder=folder) for layer in _layer_names(name, folder=folder)]
    flags = [Setting(key, value, "flag", "--conf") for key, value in (overrides or {}).items()]
    settings = {setting.key: setting for layer in [*layers, flags] for setting in layer}
    return Profile(name, settings)


def conf_folder(explicit: str | None, *, environ: Mapping[str, str]) -> Path:
    """The folder of the profiles: the flag, $SALTPAN_CONF, the clone, then the copy in the package.

    Raises:
        ConfigurationError: the named folder holds no base.conf.
    """
    asked = explicit or environ.get("SALTPAN_CONF")
    if asked:
        return _checked(Path(asked).expanduser(), by="--conf-dir" if explicit else "SALTPAN_CONF")
    package = Path(__file__).resolve().parent
    for folder in (package.parents[1] / "conf", package / "conf"):
        if (folder / f"{BASE}{SUFFIX}").is_file():
            return folder
    return _checked(_unpacked(), by="the installation")


@cache
def _unpacked() -> Path:
    """The copy of a package that runs from its zip, as in cluster mode, in a folder of this process."""
    folder = tempfile.TemporaryDirectory(prefix="saltpan-conf-")
    _TEMPORARY.append(folder)
    source = files("common.settings").joinpath("conf")
    for entry in source.iterdir() if source.is_dir() else ():
        if entry.is_file():
            (Path(folder.name) / entry.name).write_bytes(entry.read_bytes())
    return Path(folder.name)


# Held until the process ends, which removes them.
_TEMPORARY: list[tempfile.TemporaryDirectory[str]] = []


def log_config(folder: Path) -> Path | None:
    """The Log4j properties in a folder of profiles, if it has any."""
    path = folder / "log4j2.properties"
    return path if path.is_file() else None


def _checked(folder: Path, *, by: str) -> Path:
    if not (folder / f"{BASE}{SUFFIX}").is_file():
        raise ConfigurationError(
            "folder", str(folder), expected=f"a {BASE}{SUFFIX} in it", got=f"none, named by {by}"
        )
    return folder


def _layer_names(name: str, *, folder: Path) -> list[str]:
    """The layers of a profile, the weakest first.

    Raises:
        UnknownNameError: not SITE or SITE+ACCELERATOR of those that there are.
    """
    if name == BASE:
        return [BASE]
    site, _, accelerator = name.partition("+")
    sites = _sites(folder)
    choices = [*ACCELERATORS, *_NO_LAYER]
    if site in choices:
        swapped = f"local+{site}" if not accelerator else f"{accelerator}+{site}"
        hint = f"an accelerator follows a site, as in `{swapped}`"
        raise _unknown("profile", name, choices=sites, hint=hint)
    if site not in sites:
        raise _unknown("profile", site, choices=sites)
    if "+" in name and accelerator not in choices:
        raise _unknown("accelerator", accelerator, choices=choices)
    if not accelerator or accelerator in _NO_LAYER:
        return [BASE, site]
    here = f"{accelerator}@{site}"
    special = [here] if (folder / f"{here}{SUFFIX}").is_file() else []
    return [BASE, site, accelerator, *special]


def _sites(folder: Path) -> list[str]:
    names = sorted(path.stem for path in folder.glob(f"*{SUFFIX}"))
    return [name for name in names if name not in (BASE, *ACCELERATORS) and "@" not in name]


def _unknown(what: str, name: str, *, choices: Sequence[str], hint: str | None = None) -> UnknownNameError:
    expected = f"one of {', '.join(choices)}"
    return UnknownNameError(
        what, name, expected=expected, got=repr(name), hint=hint or did_you_mean(name, choices)
    )


def _layer(name: str, *, folder: Path) -> list[Setting]:
    path = folder / f"{name}{SUFFIX}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            "profile", str(path), expected="a readable text file", got=str(error)
        ) from error
    return parse_properties(text, layer=name, origin=f"{folder.name}/{path.name}")


def parse_properties(text: str, *, layer: str, origin: str) -> list[Setting]:
    """The settings of a file in spark-defaults form.

    Raises:
        ConfigurationError: a key stands twice, or has no value.

    >>> settings = parse_properties("spark.a  1 2\\n# why\\nspark.b=x=y", layer="l", origin="f")
    >>> [(s.key, s.value, s.origin) for s in settings]
    [('spark.a', '1 2', 'f:1'), ('spark.b', 'x=y', 'f:3')]
    """
    settings: dict[str, Setting] = {}
    for number, line in _logical_lines(text.splitlines()):
        key, value = _split(line)
        here = f"{origin}:{number}"
        if not value:
            raise ConfigurationError("key", key, expected="a value after the key", got=f"none at {here}")
        if key in settings:
            raise ConfigurationError(
                "key", key, expected="once in a layer", got=f"twice, at {settings[key].origin} and {here}"
            )
        settings[key] = Setting(key, value, layer, here)
    return list(settings.values())


def _logical_lines(lines: Sequence[str]) -> Iterable[tuple[int, str]]:
    """Lines with content; one that ends in a backslash goes on in the next, as in Java properties."""
    start, held = 0, ""
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not held and (not line or line[0] in "#!"):
            continue
        start = start if held else number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        yield start, held + line
        held = ""
    if held:
        yield start, held


def _split(line: str) -> tuple[str, str]:
    """Key and value at the first of white space, `=` or `:`."""
    end = next((index for index, character in enumerate(line) if character in "=: \t"), len(line))
    return line[:end], line[end:].lstrip(" \t").removeprefix("=").removeprefix(":").strip()
