"""The audit log: who changed what, and when, in the transaction of the change itself.

It owns the entries and their chain, which the leading controller seals and anybody with the database can verify. Other rooms call
`entries`; `chain` and `sealing` are for the command that verifies and for the controller.
"""

PUBLIC = ("chain", "entries", "sealing")
