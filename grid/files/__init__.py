"""Project files in Git: a bare repository for each project, below one directory.

executor       the program beside an execution that fetches its files and saves what changed; it stands alone
git            runs git on a repository
repositories   what the dashboard reads of them
"""
