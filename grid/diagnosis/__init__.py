"""Why something waits or failed, in words, with the evidence and who can act; and descriptions as `kubectl describe` writes them. Pure.

It owns the reading of pods, events, scheduler messages and exit codes, and the placement of a pod on each node (`placement`). It knows
no framework and asks nobody; others hand it objects and import `diagnosis`, `requests`, `launchfit` and `describe`.
"""
