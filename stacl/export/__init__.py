"""Exports trained models to ONNX graphs that run without torch.

It may import live and everything below, but not training.
"""
