"""Which URLs of remote repositories are followed, and what git says of one that does not work, in words."""

import pytest

from grid.diagnosis.remotetroubles import explain, scrubbed
from grid.files.remoteurls import parse


@pytest.mark.parametrize(
    ("typed", "text", "known_host"),
    [
        ("https://git.example.com/group/name.git", "https://git.example.com/group/name.git", "[git.example.com]:443"),
        (" https://Git.Example.com:443/~bob/a%20b ", "https://git.example.com/~bob/a%20b", "[git.example.com]:443"),
        ("https://[fd12::5]:8443/a", "https://[fd12::5]:8443/a", "[fd12::5]:8443"),
        ("git@github.com:group/name.git", "ssh://git@github.com/group/name.git", "github.com"),
        ("git@host:/srv/a.git", "ssh://git@host/srv/a.git", "host"),
        ("ssh://git@host:2222/a/b", "ssh://git@host:2222/a/b", "[host]:2222"),
        ("SSH://org-1@vs-ssh.example.com/v3/a", "ssh://org-1@vs-ssh.example.com/v3/a", "vs-ssh.example.com"),
    ],
)
def test_a_url_is_put_together_again_from_its_parts(typed: str, text: str, known_host: str) -> None:
    made = parse(typed)
    assert made.text == text
    assert made.known_host == known_host
    assert parse(made.text) == made


@pytest.mark.parametrize(
    "typed",
    [
        *("", "/etc", "../a", "host:path", "file:///etc/passwd", "git://host/a", "http://host/a", "ext::sh -c id"),
        *("ssh+git://git@host/a", "https:host/a", "https:///a", "https://host", "https://host/"),
        *("-oProxyCommand=id", "https://-host/a", "ssh://git@-oProxyCommand=id/a", "git@-oProxyCommand=id:a"),
        *("git@host:-a", "ssh://-git@host/a", "ssh://git@host/-a", "ssh://host/a", "ssh://git:pw@host/a"),
        *("https://user:token@host/a", "https://host@evil/a", "https://host\\@evil/a", "git@host::ext", "a:b@host:c"),
        *("https://host/a?b", "https://host/a#b", "https://host/../a", "git@host:../a", "https://host/a b"),
        *("https://host:0/a", "https://host:99999/a", "https://host:8a/a", "https://[::1/a", "https://[fe80::1%25e]/a"),
        *("https://host/a\nb", "https://host/a\0", "https://höst/a", "https://host/$(id)", "https://host/`id`"),
        *("https://host/a;id", "https://host/'a", "https://*/a", "https://..host/a", "https://host/" + "a" * 600),
    ],
)
def test_any_other_url_is_refused_with_a_sentence(typed: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse(typed)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("ssh: Could not resolve hostname x: Name or service not known", "no such host"),
        ("server certificate verification failed. CAfile: none CRLfile: none", "certificate"),
        ("fatal: Authentication failed for 'https://x/a/'", "Access was refused"),
        ("fatal: could not read Username for 'https://x': terminal prompts disabled", "Access was refused"),
        ("The requested URL returned error: 403", "Access was refused"),
        ("git@x: Permission denied (publickey).\nfatal: Could not read from remote.", "does not accept the key"),
        ("remote: Repository not found.\nfatal: repository 'https://x/a/' not found", "no such repository"),
        ("fatal: '/a.git' does not appear to be a git repository", "no such repository"),
        ("The requested URL returned error: 301", "redirects"),
        ("Host key verification failed.", "not known yet"),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @ Host key verification failed.", "not the confirmed one"),
        ("ssh: connect to host x port 22: Connection timed out", "in time"),
        ("ssh: connect to host x port 22: Connection refused", "cannot be reached"),
        ("! [remote rejected] main -> main (protected branch hook declined)", "does not accept the push"),
        ("something new", ""),
    ],
)
def test_git_error_is_put_into_words(message: str, words: str) -> None:
    assert words in explain(message)
    assert bool(words) == bool(explain(message))


def test_a_text_of_gits_is_shown_without_credentials() -> None:
    message = "fatal: unable to access 'https://bob:hunter2@host/a'\nremote: you sent t0ken\x1b[31m"
    assert scrubbed(message, ["t0ken", ""]) == "fatal: unable to access 'https://host/a' remote: you sent ***?[31m"
