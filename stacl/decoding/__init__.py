"""Decoding over arrays of pieces: the engine protocol, shared rules, batched decoding, beam search and constraints.

It does not use torch, and of text it uses only subwords and languages. It may import config, text, policies and
support.
"""
