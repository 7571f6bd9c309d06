"""The house rules as checkers: source text and its place in, one line per breach out.

A place is the path below the repository, with forward slashes. A breach reads `place:line: what is wrong`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import PurePosixPath

Checker = Callable[[str, str], list[str]]

MODULE_LINES, FUNCTION_LINES = 300, 50
READS_AND_WRITES = {"read", "readStream", "write", "writeStream"}
OTHER_OUTPUT = {"writeTo", "saveAsTable", "insertInto"}
CLASSIC_ONLY = {"_jdf", "_jvm", "_jsc", "_jsparkSession", "rdd", "sparkContext"}
RANDOM = {"rand", "randn", "sample", "monotonically_increasing_id"}
RANDOM_SQL = re.compile(r"\b(rand|randn|monotonically_increasing_id)\s*\(")
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "misc", "manager", "managers"}
OWN_PACKAGES = {"common", "jobs"}
# What pyproject.toml's dependencies bring; anything else is optional.
REQUIRED_PACKAGES = {
    *("annotated_types", "cyclopts", "filelock", "findspark", "numpy", "pandas", "platformdirs"),
    *("py4j", "pyarrow", "pydantic", "pyspark", "rich"),
}
OPTIONAL_PARTS = ("pyspark.sql.connect", "pyspark.ml", "pyspark.pandas")  # need grpc, or more than we ship


@cache
def _parse(source: str, place: str) -> ast.Module:
    return ast.parse(source, filename=place)


def _breach(place: str, node: ast.AST, what: str) -> str:
    return f"{place}:{getattr(node, 'lineno', 1)}: {what}"


def _under(place: str, *folders: str) -> bool:
    return any(place.startswith(f"{folder}/") for folder in folders)


def _name(node: ast.AST) -> str | None:
    """The last part of a name: `f` of f, a.f and a.b.f."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _attributes(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Each attribute that is read, also by getattr with its name as a literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node, node.attr
        elif isinstance(node, ast.Call) and _name(node.func) == "getattr" and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node, name.value


def sessions_are_in_engine(source: str, place: str) -> list[str]:
    """Only engine makes or finds sessions."""
    if _under(place, "common/engine"):
        return []
    tree = _parse(source, place)
    found = [
        _breach(place, node, f"`.{name}`: sessions are made in common/engine")
        for node, name in _attributes(tree)
        if name in {"getOrCreate", "getActiveSession"}
        or (name == "builder" and isinstance(node, ast.Attribute) and _name(node.value) == "SparkSession")
    ]
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    made = [node for node in calls if _name(node.func) in {"SparkSession", "SparkContext"}]
    return found + [
        _breach(place, node, f"`{_name(node.func)}(`: sessions are made in common/engine") for node in made
    ]


def reads_and_writes_are_in_engine(source: str, place: str) -> list[str]:
    """Only engine has Spark read or write. `file.read()` and `file.write(x)` are files, not Spark."""
    if _under(place, "common/engine"):
        return []
    tree = _parse(source, place)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return [
        _breach(place, node, f"`.{name}`: Spark reads and writes in common/engine")
        for node, name in _attributes(tree)
        if name in OTHER_OUTPUT or (name in READS_AND_WRITES and id(node) not in called)
    ]


def classic_is_declared(source: str, place: str) -> list[str]:
    """What Spark Connect lacks is used where REQUIRES says "classic", and never in transforms."""
    tree = _parse(source, place)
    if _declares_classic(tree) and not _under(place, "common/transforms"):
        return []
    return [
        _breach(place, node, f'`.{name}` is classic Spark only: declare REQUIRES = frozenset({{"classic"}})')
        for node, name in _attributes(tree)
        if name in CLASSIC_ONLY
    ]


def _declares_classic(tree: ast.Module) -> bool:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if value is None or not any(isinstance(name, ast.Name) and name.id == "REQUIRES" for name in targets):
            continue
        return any(isinstance(part, ast.Constant) and part.value == "classic" for part in ast.walk(value))
    return False


def only_the_console_prints(source: str, place: str) -> list[str]:
    """`print` is in common/core/console.py only."""
    if place == "common/core/console.py":
        return []
    return [
        _breach(place, node, "print: common/core/console.py prints")
        for node in ast.walk(_parse(source, place))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def nothing_is_random(source: str, place: str) -> list[str]:
    """Transforms and jobs depend on row content only, in Python and in SQL text."""
    if not _under(place, "common/transforms", "jobs"):
        return []
    tree = _parse(source, place)
    docstrings = {id(text) for text in _docstrings(tree)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in RANDOM:
            found.append(_breach(place, node, f"`{_name(node.func)}(` differs from run to run"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found += [
                _breach(place, node, f"`{hit}(` in SQL differs from run to run")
                for hit in RANDOM_SQL.findall(node.value)
            ]
    return found


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def optional_packages_are_imported_late(source: str, place: str) -> list[str]:
    """Modules import what pyproject.toml requires; optional packages are imported in functions."""
    return [
        _breach(place, node, f"`{module}` is optional: import it in the function that needs it")
        for node, module in _imports_at_module_level(_parse(source, place))
        if _is_optional(module)
    ]


def _is_optional(module: str) -> bool:
    if any(module == part or module.startswith(f"{part}.") for part in OPTIONAL_PARTS):
        return True
    root = module.partition(".")[0]
    return root not in sys.stdlib_module_names and root not in REQUIRED_PACKAGES | OWN_PACKAGES


def _imports_at_module_level(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((child, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0:
            yield child, child.module or ""
            # `from pyspark.sql import connect` imports a module as well.
            yield from (
                (child, name)
                for name in (f"{child.module}.{alias.name}" for alias in child.names)
                if name in OPTIONAL_PARTS
            )
        elif isinstance(child, ast.If) and _name(child.test) == "TYPE_CHECKING":
            continue
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imports_at_module_level(child)


def modules_say_what_they_are(source: str, place: str) -> list[str]:
    """Every module begins with a docstring."""
    return [] if ast.get_docstring(_parse(source, place)) else [f"{place}:1: no docstring"]


def names_are_of_their_own(source: str, place: str) -> list[str]:
    """No module or folder is named like a standard module (jobs/ is first on sys.path), nor says nothing."""
    path = PurePosixPath(place)
    parts = [part for part in (*path.parts[:-1], path.stem) if part != "__init__"]
    return [
        f"{place}:1: `{part}` is a standard module's name"
        for part in parts
        if part in sys.stdlib_module_names
    ] + [
        f"{place}:1: `{part}` says nothing: name the concept"
        for part in parts
        if VAGUE_NAMES & set(part.lower().split("_"))
    ]


def sizes_are_human(source: str, place: str) -> list[str]:
    """Modules and functions fit in a reader's mind; a function's docstring does not count."""
    found = []
    lines = source.count("\n")
    if lines > MODULE_LINES:
        found.append(f"{place}:1: {lines} lines, more than {MODULE_LINES}: which second concept is in it?")
    for node in ast.walk(_parse(source, place)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = _code_lines(node)
            if length > FUNCTION_LINES:
                found.append(_breach(place, node, f"{node.name}: {length} lines, more than {FUNCTION_LINES}"))
    return found


def _code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None:
        length -= (first.end_lineno or first.lineno) - first.lineno + 1
    return length


def condition_ids_are_unique(source: str, place: str) -> list[str]:
    """Every SuiteError has a condition id of its own, in UPPER_SNAKE_CASE."""
    classes = [node for node in ast.walk(_parse(source, place)) if isinstance(node, ast.ClassDef)]
    family = {"SuiteError"}
    for node in classes:  # a base is defined before its leaves
        if any(_name(base) in family for base in node.bases):
            family.add(node.name)
    ids = {node.name: _condition(node) for node in classes if node.name in family}
    times = Counter(ids.values())
    found = []
    for node in classes:
        condition = ids.get(node.name, "FINE")
        if condition is None:
            found.append(_breach(place, node, f"{node.name} has no condition of its own"))
        elif not re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", condition):
            found.append(_breach(place, node, f"{condition}: not UPPER_SNAKE_CASE"))
        elif times[condition] > 1:
            found.append(_breach(place, node, f"{condition}: an id of {times[condition]} errors"))
    return found


def _condition(node: ast.ClassDef) -> str | None:
    for part in node.body:
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        value = getattr(part, "value", None)
        named = any(isinstance(target, ast.Name) and target.id == "condition" for target in targets)
        if named and isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    return None


# Built from parts, so that this file does not break its own rule.
_MACHINE_FOLDERS = "|".join(("work", "root", "farm", "home", "Users", "tmp/dev", "opt/wheels"))
MACHINE_PATHS = re.compile(rf"(?<![\w.~$}}*-])/(?:{_MACHINE_FOLDERS})/[\w.]+")
INDEX_HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"), ("pythonhosted", "org"), ("repo1", "maven", "org"), ("repo", "maven", "apache"),
            ("crates", "io"), ("registry", "npmjs"), ("proxy", "golang"), ("deb", "debian", "org"),
        )
    )
)  # fmt: skip


def text_names_no_machine(text: str, place: str) -> list[str]:
    """No path of somebody's machine, no address of a package index."""
    return [
        f"{place}:{number}: `{hit.group()}` belongs to a machine"
        for number, line in enumerate(text.splitlines(), start=1)
        for pattern in (MACHINE_PATHS, INDEX_HOSTS)
        for hit in pattern.finditer(line)
    ]


SOURCE_RULES: tuple[Checker, ...] = (
    sessions_are_in_engine,
    reads_and_writes_are_in_engine,
    classic_is_declared,
    only_the_console_prints,
    nothing_is_random,
    optional_packages_are_imported_late,
    modules_say_what_they_are,
    names_are_of_their_own,
    sizes_are_human,
)


def breaches(rule: Checker, files: Iterable[tuple[str, str]]) -> list[str]:
    """All breaches of one rule in (place, source) pairs."""
    return [line for place, source in files for line in rule(source, place)]
