"""How the output is searched, over arrays of pieces: the engine protocol, the rules that all searches share, batched
decoding, beams, and one file per constraint in `constraints/`. It knows no torch and no text beyond subwords. It
may import config, text, policies and support.
"""
