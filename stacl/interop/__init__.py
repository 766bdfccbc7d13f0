"""Adapters for tools of other projects, such as SimulEval. A tool is needed only when its adapter is used.

It may import api and everything below.
"""
