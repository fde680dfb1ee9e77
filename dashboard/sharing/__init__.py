"""Opening an execution, and sharing an app or a port of a workspace with members of its project.

It owns the Open button, which hands a person over to the execution's own origin, and the owner's forms of who else may. No other room
imports it; who may open what is decided in `grid.sharing`.
"""

PUBLIC = ("urls",)
