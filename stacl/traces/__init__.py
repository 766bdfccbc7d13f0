"""Traces: the read/write path of a sentence, its checks, log files (ours and SimulEval's), and the simulated speaker
that assigns times to a trace. It may import support.
"""
