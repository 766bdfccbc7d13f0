"""What to say, in torch: `forward` for training, `start`, `read` and `write` for live use. One file per model kind; the
helpers are batches, masks, attention, dropout and the loss. It may import config, text, policies and support."""

HELPERS = ("attention", "batch", "dropout", "loss", "masks")  # modules that are no model kind
