"""One file a verb. Each has a docstring (its first line is the one-line help), `configure(parser)` and `run(args)`."""
