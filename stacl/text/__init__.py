"""Text processing: languages, word splitting, sentence segmentation, markup, passthrough and subword pieces.

All text takes this one path into a model. It may import support."""
