"""Project files in Git: a bare repository for each project, below one directory.

executor        the program beside an execution that fetches its files and saves what changed; it stands alone
git             runs git on a repository
repositories    what the dashboard reads of them
changing        what the dashboard writes into them for a person
remoteurls      which URLs of remote repositories are followed, and their parts
remotes         runs git and ssh on a remote repository: tests of the connection, the server's key, pushing again
stored_remotes  which remote a project has, with its secret, in the database
filesaving      the controller's part: whether files can be kept, and what the executor said

Others import `repositories` and `stored_remotes`; what git, ssh and the executor say in words is `grid.diagnosis`'s; nothing imports
`executor` but what ships it.
"""

PUBLIC = ("changing", "filesaving", "git", "remotes", "remoteurls", "repositories", "stored_remotes")
