"""What is done about alerts: operators are told of them, and silence them.

`silences` says which are in force and records them, `alertmanager` speaks to Alertmanager's API, `passing` keeps both of one mind, and
`telling` notifies operators.
"""
