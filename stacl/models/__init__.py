"""What to say: `forward` for training, `start` / `read` / `write` for live. One file a model."""
