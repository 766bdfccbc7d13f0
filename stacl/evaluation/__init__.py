"""Quality and latency of a model on a test set, under several policies. It may import api and everything below."""
