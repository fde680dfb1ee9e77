"""The four ways to change an object by PATCH: merge, strategic merge, JSON patch, and server-side apply. Pure
functions of plain data.
"""
