"""Training: data preparation, the training loop, minimum risk training, validation, warm starts, threads and processes.

May import live and the layers below it, but not the other packages of its own layer.
"""
