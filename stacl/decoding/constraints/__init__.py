"""Constraints on the next piece. There is one file per constraint, and the file name selects it."""
