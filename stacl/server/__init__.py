"""The page and the interface for programs: docs/api.md is the contract.

`app.py` puts it together. `live.py` is one websocket, `session.py` one session that outlives it, `tracks.py` what a
session computes; `worker.py` shares the processor out. `hub.py` knows all sessions, `run.py` is the process.
"""
