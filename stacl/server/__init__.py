"""The web page and the API for programs, which docs/api.md specifies. May import anything below `commands`.

`app.py` is the ASGI application, `live.py` one websocket, `session.py` one session that outlives it, `tracks.py` what a
session computes, `worker.py` the scheduler. `hub.py` holds all sessions, `run.py` is the process.
"""
