"""Corpora: sentence pairs in splits, with licence, citation and checksums.

Each corpus is one file, and the file name is its name. May import text, traces, policies and support.
"""
