"""The public face of live use: the translator, its sessions, one sentence that is translated while it arrives, and word
alignment. It may import runs and everything below."""
