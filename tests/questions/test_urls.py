"""Links: only addresses that a person can judge are shown."""

import pytest

from interlock.questions.urls import LONGEST_URL, read_link
from interlock.vocabulary.errors import InvalidRequest
from tests.manifest import requirement


@requirement("QST-7")
@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/auth?state=1#x", "example.com"),
        ("HTTPS://Example.COM./auth", "example.com"),
        ("https://example.com:8443/", "example.com"),
        ("https://192.0.2.7/", "192.0.2.7"),
        ("https://[2001:db8::1]:8443/", "2001:db8::1"),
        ("http://localhost:8080/callback", "localhost"),
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://127.9.9.9/", "127.9.9.9"),
        ("http://[::1]:1/", "::1"),
        ("http://app.localhost/", "app.localhost"),
    ],
)
def test_https_and_loopback_addresses_show_their_host_and_stay_as_they_are(url: str, host: str) -> None:
    link = read_link(url)

    assert (link.url, link.host) == (url, host)


@requirement("QST-7")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "http://example.com/",
        "http://127.0.0.1.example.com/",
        "http://localhost.example.com/",
        "http://0.0.0.0/",
        "http:///path",
        "https://",
        "https:///path",
        "https://example.com:port/",
        "https://[::1/",
        "https://paypal.com@example.com/",
        "https://user:password@example.com/",
        "https://@example.com/",
        "https://example.com\\@paypal.com/",
        "https://example.com/ b",
        "https://example.com/\n",
        "https://exa\u200bmple.com/",
        "https://example.com/\u202egnp.exe",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vscode://x/y",
        "https://example.com/" + "x" * LONGEST_URL,
    ],
)
def test_an_address_that_could_mislead_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        read_link(url)


@requirement("QST-7")
def test_punycode_is_shown_and_warned_of() -> None:
    link = read_link("https://xn--pple-43d.com/")

    assert link.host == "xn--pple-43d.com"
    assert "punycode" in link.warnings[0]
    assert "\u0430pple.com" in link.warnings[0]


@pytest.mark.parametrize("label", ["xn--\u00e9", "xn---", "xn--a\u200b"])
def test_punycode_that_cannot_be_decoded_is_warned_of_or_refused(label: str) -> None:
    try:
        link = read_link(f"https://{label}.com/")
    except InvalidRequest:
        return
    assert link.warnings


@requirement("QST-7")
@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("https://\u0430pple.com/", "ASCII"),
        ("https://192.0.2.7/", "bare address"),
        ("http://localhost:1/", "this computer"),
    ],
)
def test_other_oddities_are_warned_of(url: str, word: str) -> None:
    assert word in read_link(url).warnings[0]


def test_an_ordinary_address_has_no_warnings() -> None:
    assert read_link("https://accounts.example.com/").warnings == ()
