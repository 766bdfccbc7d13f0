"""From what: pairs of sentences with licence, citation, checksums and splits. One file a corpus."""
