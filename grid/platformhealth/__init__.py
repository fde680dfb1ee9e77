"""Whether what the platform consists of and depends on works: lights, incidents, versions, and checks of the cluster's API on request.

It owns one bounded look at the cluster twice a minute, the pure rules that judge it, and in `apichecks` the trial of everything that we
need of an API server, in a scratch namespace. Others read `facts` and `lights`; only the leading controller looks.
"""

PUBLIC = (
    "apicheckresults", "apichecks.apicheckruns", "apichecks.keeper", "facts", "keeper", "outages", "reading", "taskhealth", "versions",
)  # fmt: skip
