"""Secrets by the text that they stand in, whatever the option is called: URLs, connection strings, JAAS, keys, tokens.

Both functions err on the side of hiding: an address in which something looks like a password may lose more than that.
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
# Of YAML the name ends there: "passed: 3" and "signal: 9" are none.
_KEY = rf"(?:[\w.%-]{{0,80}}[-_.%])?(?:[a-z]{{1,40}}(?=[A-Z]))?{_NAMES}\d{{0,3}}"
# A column of this name in a schema that is shown.
_TYPE = (
    r"(?:(?:large_)?(?:string|utf8|binary)|varchar|char|bytes|u?(?:tiny|small|big)?int(?:eger)?(?:8|16|32|64)?|"
    r"bool(?:ean)?|double|float(?:32|64)?|date(?:32|64)?|timestamp|time|decimal(?:32|64|128|256)?)"
    r"(?:[(\[][^)\]\n]*[)\]])?(?: not null)?[ \t]*(?:[\n\r,}>)\"']|\Z)"
)
# Without a choice in a repetition, at which Java's stack would overflow in a long text.
_QUOTED = r"\"[^\"\\]*(?:\\.[^\"\\]*)*(?:\"|\Z)|'[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?:'|\Z)|\{[^}]*(?:\}|\Z)"
_YAML = (
    rf"(?:\A|[\n\r{{,\"']|\\n)[ \t-]*{_KEY}[ \t]*:[ \t]+(?!{_TYPE})"
    rf"(?P<secret>{_QUOTED}|[|>][^\n]*\n[ \t][\s\S]*|[^\s][^\n\r]*)"
)

_PATTERNS = tuple(
    re.compile(pattern, flags | re.IGNORECASE)
    for pattern, flags in (
        # A key, to its end or to that of the text.
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?P<secret>[\s\S]+?)(?=-----END|\Z)", 0),
        # A JSON web token, which has three parts.
        (r"(?P<secret>\beyJ[\w-]{4,}\.eyJ[\w-]{2,}\.[\w-]*)", 0),
        (r"\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+(?P<secret>[^\s\"',;]+)", 0),
        (r"\b(?:bearer)\s+(?P<secret>[\w.~+/=-]{16,})", 0),
        # "password": "..." of JSON and of Python.
        (rf"[\"']{_NAME}[\"']\s*:\s*(?P<secret>{_QUOTED}|[^\s,}}\]]+)", 0),
        # The same in a JSON text that is itself a value of JSON.
        (rf"\\+\"{_NAME}\\+\"\s*:\s*\\+\"(?P<secret>[^\"\\]+)", 0),
        # password=... of URLs, of libpq, JDBC, ODBC and JAAS, and of Azure's connection strings.
        (rf"{_NAME}\s*=\s*(?P<secret>{_QUOTED}|[^\s&;,\"'\)\]]+)", 0),
        # password: ... of YAML, to the end of the line; of a block that begins there, to the end of the text.
        (_YAML, 0),
        # A bearer's token that stands alone may be short.
        (r"\A\s*bearer\s+(?P<secret>\S+)\s*\Z", 0),
        # Tokens of well-known services, by their prefixes.
        (r"\b(?P<secret>(?:gh[opsru]_|github_pat_|glpat-|xox[abeprs]-|hf_|sk_live_|dapi)[\w-]{16,})", 0),
        # user/password@ of Oracle's addresses.
        (r"\bjdbc:oracle:\w+:[^\s/@]*/(?P<secret>\S+)@", 0),
    )
)
# The userinfo of a URL, also of one without a scheme, ends with the last @: passwords are pasted as they are. Alone in
# its text it may hold blanks.
_URL_ALONE = re.compile(r"\s*(?:[A-Za-z][\w+.:-]*:)?//[^/\s:\[]*:(?P<secret>[^\n]+)@")
_URL_WITHIN = re.compile(r"//[^/\s:\[]*:(?P<secret>\S{1,4096})@")


def without_password(text: str) -> str:
    """The text as it may be shown: ``postgresql://user:******@host/db``, ``?sig=******``."""
    shown = text
    for pattern in (_url_pattern(text), *_PATTERNS):
        shown = pattern.sub(_hidden, shown)
    return shown


def holds_secret(text: str) -> bool:
    """Whether a value or a statement holds a password, a key, a token or the like."""
    return without_password(text) != text


def secrets_in(text: str) -> list[str]:
    """The passwords, keys and tokens of a text, as they stand there and, of a URL, as they are meant."""
    found: dict[str, None] = {}
    for pattern in (_url_pattern(text), *_PATTERNS):
        for match in pattern.finditer(text):
            for secret in _spellings(match["secret"]):
                found.setdefault(secret)
    return [secret for secret in found if secret != MASK]


def secret_text_pattern() -> str:
    """A regular expression, for Java too, that finds what ``without_password`` hides, with what names it."""
    patterns = (_URL_WITHIN, *_PATTERNS)
    return "(?i)" + "|".join(f"(?:{each.pattern.replace('?P<secret>', '?:')})" for each in patterns)


def hidden_in(text: str, secrets: Iterable[str]) -> str:
    """The text as it may be shown, without these known secrets; one of under four characters is not looked for."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _LENGTH_MIN:
            text = text.replace(secret, MASK)
    return without_password(text)


def _url_pattern(text: str) -> re.Pattern[str]:
    return _URL_ALONE if _URL_ALONE.match(text) else _URL_WITHIN


def _hidden(match: re.Match[str]) -> str:
    start, end = (place - match.start() for place in match.span("secret"))
    return match[0][:start] + MASK + match[0][end:]


def _spellings(secret: str) -> Iterator[str]:
    bare = secret[1:-1] if secret[:1] in "\"'{" and len(secret) > 2 else secret
    yield bare
    if (meant := unquote(bare)) != bare:
        yield meant
