"""Plots: one file per kind. matplotlib is imported only when a plot is drawn.

It may import api and everything below.
"""
