"""The operators' pages of the cluster: the overview, infrastructure with its pools, one node, one pod, and what they used over time.

It owns the words of a node's state, drains, marks and limits of pools, and the charts of use. Others import `viewmodels.nodes`.
"""

PUBLIC = (
    "pages.infrastructure", "pages.node", "pages.overview", "pages.use_history", "urls", "viewmodels.infrastructure",
    "viewmodels.misconfigured", "viewmodels.nodes", "viewmodels.pool_history", "viewmodels.use_history", "views.use_history",
)  # fmt: skip
