"""From text to weights: preparation of corpora, the training loop, minimum risk training, validation, warm starts,
threads and processes. It may import live and everything below, but not the other rooms of its layer."""
