"""One file per verb, thin: `configure(parser)` and `run(args)`; the first line of its docstring is the one-line
help. It may import every room.
"""
