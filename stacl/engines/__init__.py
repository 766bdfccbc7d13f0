"""What runs a model: torch, or ONNX Runtime without torch. One file per engine; `kv_cache` holds the keys and values of
the ONNX engine. It may import models, decoding and everything below."""

HELPERS = ("kv_cache",)  # modules that are no engine
