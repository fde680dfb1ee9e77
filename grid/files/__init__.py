"""Project files in Git: a bare repository for each project, below one directory.

executor        the program beside an execution that fetches its files and saves what changed; it stands alone
git             runs git on a repository
repositories    what the dashboard reads of them
changing, uploading, commits
                what the dashboard writes into them for a person
remoteurls      which URLs of remote repositories are followed, and their parts
remotes         runs git and ssh on a remote repository: tests of the connection, the server's key, pushing again
remotetroubles  what git and ssh say of one, in words
stored_remotes  which remote a project has, with its secret, in the database
filesaving, run_report
                the controller's part: whether files can be kept, and what the executor said

Others import `repositories`, `stored_remotes` and the words of `run_report`; nothing imports `executor` but what ships it.
"""
