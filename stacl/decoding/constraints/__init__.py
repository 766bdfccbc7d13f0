"""What may not be written next. One file per constraint; the file name is its name, by which it is switched on and
off.
"""
