"""Measures quality and latency of a model on test sets, under several policies.

It may import api and everything below."""
