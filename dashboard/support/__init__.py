"""Support bundles: what somebody who helps wants to see of an execution, or of the platform, in one file.

It composes what other rooms show, each with the permission and the words of its page and with secrets taken out. No other room imports
it.
"""

PUBLIC = ("urls",)
