"""When to speak: how much source is read before each target unit. One file per policy; the file name is its name. No
torch, no text. It may import support.
"""
