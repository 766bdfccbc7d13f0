"""The engines that run a model, one file each: torch, or ONNX Runtime without torch.

`kv_cache` is the KV cache of the ONNX engine. It may import models, decoding and everything below."""

HELPERS = ("kv_cache",)  # modules that are not engines
