"""Pictures: one file a kind. matplotlib is imported when something is drawn, not before."""
