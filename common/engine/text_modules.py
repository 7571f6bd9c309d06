"""A tokenizer of the user's own, `module:function`: found on this machine, and sent to the workers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from common.engine.handle import is_connect
from common.transforms.words_rules import WordRules

REQUIRES = frozenset({"classic"})  # for a session of that kind; on Connect the file is an artifact


def module_of(tokenizer: str) -> str | None:
    """The module of a tokenizer `module:function`; None for the others.

    >>> module_of("my_words:cut"), module_of("regex:[a-z]+:x"), module_of("unicode")
    ('my_words', None, None)
    """
    module, colon, _ = tokenizer.partition(":")
    return module if colon and module != "regex" else None


def look_here(tokenizer: str) -> None:
    """Let a module be found that is a file of the current folder, as `python` itself would."""
    module = module_of(tokenizer)
    here = str(Path.cwd())
    if module and here not in sys.path and Path(f"{module.partition('.')[0]}.py").is_file():
        sys.path.append(here)


def ship_tokenizer(spark: SparkSession, rules: WordRules) -> None:
    """Send the file of a `module:function` tokenizer to the workers.

    A module that is one file goes with the job. What belongs to a package must be installed where the workers
    are, or be sent with --py-files.
    """
    path = _file_of(module_of(rules.tokenizer))
    if path is None:
        return
    if is_connect(spark):
        spark.addArtifacts(str(path), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(path))


def _file_of(module: str | None) -> Path | None:
    if module is None or "." in module:
        return None
    spec = importlib.util.find_spec(module)
    path = Path(spec.origin) if spec is not None and spec.origin else None
    installed = path is None or path.suffix != ".py" or "site-packages" in path.parts
    is_package = spec is not None and spec.submodule_search_locations is not None
    return None if installed or is_package or module in sys.stdlib_module_names else path
