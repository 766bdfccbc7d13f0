"""What happened, as values: the trace of a sentence, its checks, log files (ours and SimulEval's), and the simulated
speaker that puts traces on a clock. It may import support."""
