"""The executor: the container beside an execution's program that fetches the project's files from Git, and saves what changed.

It stands alone: Python's standard library and git, nothing else of this project. Its folder is copied into the image and run as it is
(`python3 -I <folder>`), so its modules import each other by their place. It runs before the program starts and until after its end:

    prepare   check out the branch or commit into the working copy; then the file `ready` appears
    wait      until SIGTERM, or until a stop (`stopping` appears) has nearly used up the grace period
    save      commit what changed, push it; on a conflict to a branch named after the execution. Of a job, what it wrote into its
              results folder goes to refs/results/<execution> and not to the branch

Where the cluster has no native sidecars, two containers share this: one that only prepares (`--only-prepare`), and one beside the program
that is told of its end by a file (`--told`), because SIGTERM reaches both at the same time there.

Nothing is overwritten or lost as long as any volume can be written: what cannot be pushed is kept as a bundle, what cannot even be
committed as a copy, in the repository's volume or in HOME. Its last words, as JSON, are the container's termination message.

With `remote` the branches are those of a server of the project's own: git gets the secret through a file and a program that prints it,
never as an argument, in a variable or in the URL; no other scheme, no redirect and no unknown key is followed.

No configuration, hook or filter of the program's is ever obeyed: its own Git directory is out of the program's reach. A `.git` that the
program made is saved as plain files under another name, and gets its own back at the next start of the same person alone, for whatever
looks at it runs its hooks; never from a remote repository, whose authors anybody may have written.

In the working copy and in HOME a program may put a link or a pipe in the place of anything, at any moment. So git never reads or writes
there while one runs: files are opened here, each folder from the one above it and without following a link, and git gets their
descriptors. New files in HOME get their name at the end. State, repository and secret are volumes that no program has: paths are safe.
"""

from .gitcommand import (
    ASKPASS as ASKPASS,
    ISOLATED as ISOLATED,
    SSH_COMMAND as SSH_COMMAND,
    GitError as GitError,
    identity as identity,
)
from .preparing import prepare as prepare
from .saving import save as save, size_of as size_of
from .task import GONE as GONE, UNUSABLE as UNUSABLE, Missing as Missing, Task as Task
