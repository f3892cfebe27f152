"""The version, in one place: the package, its builds and what results say they were made with."""

__version__ = "0.3.0"
