"""The files of a run: the layout of its folder, checkpoints, the inference manifest, exported weights, and the
shipped models in `pretrained/`. It may import engines and everything below.
"""
