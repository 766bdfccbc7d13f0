"""From what: pairs of sentences with licence, citation, checksums and splits. One file per corpus; the file name is its
name. It may import text, traces, policies and support."""
