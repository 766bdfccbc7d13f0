"""The device and the precision of a run."""

from __future__ import annotations

import torch

from stacl.support.errors import UserError


def choose_device(name: str, local: int = 0) -> torch.device:
    """The device for `train.device`. `local` is the rank on this machine: each process uses its own GPU."""
    if name == "auto":
        return torch.device(f"cuda:{local}" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"train.device is {name}, but no GPU is available; use cpu or auto")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"train.device is {name}, but there are {torch.cuda.device_count()} GPUs, counted from 0")
    return device


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        if device.type != "cuda":
            return torch.float32
        name = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    chosen: torch.dtype = getattr(torch, name)
    return chosen
