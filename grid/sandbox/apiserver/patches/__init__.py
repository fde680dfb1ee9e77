"""The three ways to change an object by PATCH: merge, strategic merge and JSON patch. Pure functions of plain data."""
