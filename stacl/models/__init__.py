"""Translation models in torch: `forward` for training, `start`, `read` and `write` for live use.

Each model kind is one file. The helpers are batches, masks, attention, dropout and the loss. May import config, text,
policies and support.
"""

HELPERS = ("attention", "batch", "dropout", "loss", "masks")  # modules that are not a model kind
