"""Pictures: one file per kind. matplotlib is imported when something is drawn, not before. It may import api and
everything below.
"""
