"""Characters in, words and subword pieces out, and back: languages, words, sentences, markup, what is copied unchanged,
subwords. The one path that text takes into a model starts here. It may import support."""
