"""The executor: the container beside an execution's program that fetches the project's files from Git, and saves what changed.

It stands alone: Python's standard library and git, nothing else of this project. Its folder is copied into the image and run as it is
(`python3 -I <folder>`), so its modules import each other by their place. It runs before the program starts and until after the
program's end, when it is sent SIGTERM:

    prepare   check out the branch or commit into the working copy; then the file `ready` appears
    wait      until SIGTERM, or until a stop (`stopping` appears) has nearly used up the grace period
    save      commit what changed, push it; on a conflict to a branch named after the execution. Of a job, what it wrote into its
              results folder goes to refs/results/<execution> and not to the branch

Where the cluster has no native sidecars, two containers share this: one that only prepares (`--only-prepare`), and then one beside the
program that is told of its end by a file (`--told`), because SIGTERM reaches both at the same time there.

Nothing is overwritten, and nothing is lost as long as any volume can be written: what cannot be pushed is kept as a bundle in the
repository's volume, or else in HOME; of what cannot even be committed a copy is kept, in HOME or else in the repository's volume. Its last
words, as JSON, are the container's termination message.

The branches are those of the repository's volume, or with `remote` those of a server of the project's own: then a folder of the pod has
the secret and, for SSH, the server's key. Git gets the secret through a file and a program that prints it, never as an argument, in a
variable or in the URL; no other scheme, no redirect and no unknown key is followed.

Its own Git directory is out of the program's reach, so no configuration, hook or filter of the program's is ever obeyed. A `.git` that the
program made is saved as plain files under another name, and gets its own back at the next start of the same person: its configuration and
hooks are run by whatever looks at it, so nobody gets another's. What a remote repository says of its authors anybody may have written, so
what comes from there keeps the other name.

In the working copy and in HOME a program may put a link or a pipe in the place of anything, at any moment. So git never reads or writes
there while one runs: files are opened here, each folder from the one above it and without following a link, and git gets their
descriptors. What is new in HOME is written under a name that nobody can guess, and then renamed. State, repository and secret are volumes
that no program has, so paths are safe there.
"""

from .gitcommand import ASKPASS as ASKPASS
from .gitcommand import ISOLATED as ISOLATED
from .gitcommand import SSH_COMMAND as SSH_COMMAND
from .gitcommand import GitError as GitError
from .gitcommand import identity as identity
from .preparing import prepare as prepare
from .saving import save as save
from .saving import size_of as size_of
from .task import GONE as GONE
from .task import UNUSABLE as UNUSABLE
from .task import Missing as Missing
from .task import Task as Task
