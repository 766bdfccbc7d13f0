"""From a trained model to ONNX graphs that run without torch. It may import live and everything below, but not
training.
"""
