"""Names that load when they are first used, so that `import stopwise` stays light.

A package lists where its names live and takes `__getattr__` and `__dir__` from here. Editors and
mypy read the imports under `TYPE_CHECKING` beside the list; a test holds the two to each other.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from stopwise.checks import StopwiseError

EXTRAS = {
    "numba": "fast",
    "polars": "logs",
    "sklearn": "sklearn",
    "matplotlib": "paper",
    "dask": "cluster",
    "distributed": "cluster",
    "starlette": "service",
    "granian": "service",
    "aiohttp": "service",
    "jinja2": "service",
    "psycopg": "service",
    "psycopg_pool": "service",
    "prometheus_client": "prometheus",
    "opentelemetry": "opentelemetry",
    "genai_prices": "service",
}
"""What to install for a package that not everybody needs: `pip install 'stopwise[fast]'`."""


class MissingPackageError(StopwiseError, ImportError):
    """Something needs a package that is not installed; the message says how to get it.

    >>> error = missing("reading logs", "polars")
    >>> isinstance(error, MissingPackageError), isinstance(error, ImportError)
    (True, True)
    """


def missing(what: str, package: str) -> MissingPackageError:
    """The one wording for a package that is not there.

    >>> print(missing("reading logs", "polars"))
    reading logs needs polars, which is not installed: pip install 'stopwise[logs]'
    """
    shown = "scikit-learn" if package == "sklearn" else package
    return MissingPackageError(
        f"{what} needs {shown}, which is not installed: pip install 'stopwise[{EXTRAS[package]}]'"
    )


def load(what: str, module: str) -> Any:
    """Import a module; where a package of an extra is missing, say which extra brings it.

    >>> load("this example", "math").pi > 3
    True
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package in EXTRAS:
            raise missing(what, package) from None
        raise


def lazy_names(
    package: str, where: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names live in other modules.

    Args:
        package: the package's name.
        where: for every name the module it is in; a module itself is written as its own place.

    >>> get, names = lazy_names("stopwise.policies", {"UssTs": "stopwise.policies.uss_ts"})
    >>> get("UssTs")()
    UssTs(prior_disagreed=1.0, prior_agreed=1.0)
    >>> get("UsTs")
    Traceback (most recent call last):
    ...
    AttributeError: module 'stopwise.policies' has no attribute 'UsTs'; the nearest is 'UssTs'
    """

    def get(name: str) -> Any:
        if name in where:
            module = load(f"{package}.{name}", where[name])
            value = module if where[name] == f"{package}.{name}" else getattr(module, name)
            setattr(sys.modules[package], name, value)  # so that this is asked once
            return value
        # Names with underscores are asked for by tools, which expect no advice.
        near = [] if name.startswith("_") else get_close_matches(name, names(), n=1)
        advice = f"; the nearest is {near[0]!r}" if near else ""
        raise AttributeError(f"module {package!r} has no attribute {name!r}{advice}")

    def names() -> list[str]:
        # What is for users, without what the package's own file imports.
        return sorted({*getattr(sys.modules[package], "__all__", ()), *where})

    return get, names
