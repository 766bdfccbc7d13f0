"""The public classes of live use: the translator and its sessions, and below them sentences and word alignment.

It may import runs and everything below."""
