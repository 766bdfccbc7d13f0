"""The verbs of the command line, one file each, with `configure(parser)` and `run(args)`.

The module docstring is the help text; its first line is the one-line help. It may import every other package.
"""
