"""The version of the package. `stacl.__version__`, signatures and the wheel read it from here."""

__version__ = "0.1.0"
