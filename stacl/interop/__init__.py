"""What lets other people's tools drive our translator. Each file needs its tool only when it is used. It may import
api and everything below.
"""
