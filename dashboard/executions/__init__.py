"""The pages of executions: the launch form, the live list, one execution with its life, and stopping it.

It owns the card that says before a launch what it takes and costs, the words of all states, and the records that other pages show of an
execution. It knows no kind: `kinds` has the registered faces, and `forms` what they add to the launch form. Others may import
these, `records`, `viewmodels.execution`, `viewmodels.node_reasons`, `viewmodels.executions_view` and the lists in `pages`.
"""

PUBLIC = (
    "forms", "history", "kinds", "launch_facts", "pages.execution", "pages.execution_pods", "pages.execution_rows", "pages.executions",
    "records", "urls", "viewmodels.execution", "viewmodels.execution_actions", "viewmodels.execution_groups", "viewmodels.executions_view",
    "viewmodels.launch", "viewmodels.manifest", "viewmodels.node_reasons", "viewmodels.stopping", "viewmodels.timeline",
    "views.executions", "views.launch", "views.stopping",
)  # fmt: skip
