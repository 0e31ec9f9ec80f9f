"""Find secrets in text regardless of the option's name: in URLs, connection strings, JAAS, keys and tokens.

Detection errs on the side of masking: an address with something like a password may lose more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

MASK = "******"
_LENGTH_MIN = 4

_NAMES = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|credentials?|sig(?:nature)?|token|jwt|sharedaccesssignature|"
    r"(?:account|access|api|private|secret|shared|storage|encryption|sas|master)[-_. ]?(?:access[-_. ]?)?key|"
    r"client[-_. ]?secret|user[-_. ]?info)"
)
# Names may have text before and after these words: X-Amz-Signature, ssl.key.password, AccountKeyValue, password2.
_NAME = rf"(?<![A-Za-z])(?:[\w.%-]{{0,80}}[-_.%])?(?:[a-z]{{1,40}}(?=[A-Z]))?{_NAMES}[\w.-]{{0,80}}"
# In YAML the name ends here: "passed: 3" and "signal: 9" are not secrets.
_KEY = rf"(?:[\w.%-]{{0,80}}[-_.%])?(?:[a-z]{{1,40}}(?=[A-Z]))?{_NAMES}\d{{0,3}}"
# A type, as in a printed schema with a column of such a name.
_TYPE = (
    r"(?:(?:large_)?(?:string|utf8|binary)|varchar|char|bytes|u?(?:tiny|small|big)?int(?:eger)?(?:8|16|32|64)?|"
    r"bool(?:ean)?|double|float(?:32|64)?|date(?:32|64)?|timestamp|time|decimal(?:32|64|128|256)?)"
    r"(?:[(\[][^)\]\n]*[)\]])?(?: not null)?[ \t]*(?:[\n\r,}>)\"']|\Z)"
)
# Avoids alternatives inside a repetition, which overflow Java's stack for long texts.
_QUOTED = r"\"[^\"\\]*(?:\\.[^\"\\]*)*(?:\"|\Z)|'[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?:'|\Z)|\{[^}]*(?:\}|\Z)"
_YAML = (
    rf"(?:\A|[\n\r{{,\"']|\\n)[ \t-]{{0,200}}{_KEY}[ \t]*:[ \t]+(?!{_TYPE})"
    rf"(?P<secret>{_QUOTED}|[|>][^\n]*\n[ \t][\s\S]*|[^\s][^\n\r]*)"
)

_PATTERNS = tuple(
    re.compile(pattern, flags | re.IGNORECASE)
    for pattern, flags in (
        # A private key, up to its end or the end of the text.
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?P<secret>[\s\S]+?)(?=-----END|\Z)", 0),
        # A JSON web token with its three parts.
        (r"(?P<secret>(?<![\w-])eyJ[\w-]{4,}\.eyJ[\w-]{2,}\.[\w-]*)", 0),
        (r"\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+(?P<secret>[^\s\"',;]+)", 0),
        (r"\b(?:bearer)\s+(?P<secret>[\w.~+/=-]{16,})", 0),
        # "password": "..." in JSON and Python.
        (rf"[\"']{_NAME}[\"']\s*:\s*(?P<secret>{_QUOTED}|[^\s,}}\]]+)", 0),
        # The same in JSON text inside a JSON string.
        (rf"\\+\"{_NAME}\\+\"\s*:\s*\\+\"(?P<secret>[^\"\\]+)", 0),
        # password=... in URLs, libpq, JDBC, ODBC, JAAS and Azure's connection strings.
        (rf"{_NAME}\s*=\s*(?P<secret>{_QUOTED}|[^\s&;,\"'\)\]]+)", 0),
        # password: ... in YAML, up to the end of the line; for a block scalar, up to the end of the text.
        (_YAML, 0),
        # A bearer token that is the whole text may be short.
        (r"\A\s*bearer\s+(?P<secret>\S+)\s*\Z", 0),
        # Tokens of well-known services, by their prefixes.
        (r"\b(?P<secret>(?:gh[opsru]_|github_pat_|glpat-|xox[abeprs]-|hf_|sk_live_|dapi)[\w-]{16,})", 0),
        # user/password@ in Oracle's addresses.
        (r"\bjdbc:oracle:\w+:[^\s/@]{0,200}/(?P<secret>\S{1,200})@", 0),
    )
)
# The userinfo of a URL, with or without a scheme, ends at the last @, since passwords may be unescaped. If the URL is
# the whole text, it may contain spaces.
_URL_ALONE = re.compile(r"\A\s*(?:[A-Za-z][\w+.:-]*:)?//[^/\s:\[]*:(?P<secret>[^\n]+)@")
_URL_WITHIN = re.compile(r"//[^/\s:\[]*:(?P<secret>\S{1,4096})@")
_RUN = re.compile(r"\S+")
_USER = re.compile(r"//[^/\s:\[]*:(?=.)")


def without_password(text: str) -> str:
    """Mask secrets in a text: ``postgresql://user:******@host/db``, ``?sig=******``."""
    shown, end = "", 0
    for start, stop in _in_urls(text):
        shown, end = f"{shown}{text[end:start]}{MASK}", stop
    shown += text[end:]
    for pattern in _PATTERNS:
        shown = pattern.sub(_hidden, shown)
    return shown


def holds_secret(text: str) -> bool:
    """Whether a value or a statement contains a password, a key, a token or another secret."""
    return without_password(text) != text


def secrets_in(text: str) -> list[str]:
    """Return the passwords, keys and tokens in a text, verbatim and also URL-decoded."""
    found: dict[str, None] = {}
    for start, stop in _in_urls(text):
        for secret in _spellings(text[start:stop]):
            found.setdefault(secret)
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            for secret in _spellings(match["secret"]):
                found.setdefault(secret)
    return [secret for secret in found if secret != MASK]


def secret_text_pattern() -> str:
    """Return a regular expression, valid in Java as well, that matches secrets together with their names."""
    patterns = (_URL_WITHIN, *_PATTERNS)
    return "(?i)" + "|".join(f"(?:{each.pattern.replace('?P<secret>', '?:')})" for each in patterns)


def hidden_in(text: str, secrets: Iterable[str]) -> str:
    """Mask these known secrets, except those under four characters, and all others in a text."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _LENGTH_MIN:
            text = text.replace(secret, MASK)
    return without_password(text)


def _in_urls(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the passwords of URLs are, in a time that grows with the text only: others may have written it."""
    alone = _URL_ALONE.match(text)
    if alone is not None:
        yield alone.span("secret")
    for run in _RUN.finditer(text, 0 if alone is None else alone.end()):
        last = run[0].rfind("@")
        user = _USER.search(run[0], 0, last) if last > 0 else None
        if user is not None:
            yield run.start() + user.end(), run.start() + last


def _hidden(match: re.Match[str]) -> str:
    start, end = (place - match.start() for place in match.span("secret"))
    return match[0][:start] + MASK + match[0][end:]


def _spellings(secret: str) -> Iterator[str]:
    bare = secret[1:-1] if secret[:1] in "\"'{" and len(secret) > 2 else secret
    yield bare
    if (meant := unquote(bare)) != bare:
        yield meant
