"""The files of a run: folder layout, checkpoints, inference manifest, exported weights, and shipped models.

It may import engines and everything below.
"""
