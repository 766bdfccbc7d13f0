"""Helpers for all other packages: user errors, plugin discovery, atomic files, input validation, progress, memory.

It must not import any other package of stacl."""
