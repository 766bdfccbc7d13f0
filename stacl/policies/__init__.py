"""Reading policies: how much source to read before each target unit. One file per policy; the file name is its name.
It needs neither torch nor text. It may import support.
"""
