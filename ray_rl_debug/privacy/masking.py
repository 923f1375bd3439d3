r"""What looks like a secret, in any text that leaves: its value becomes ``***``.

Only forms that are hardly anything else: ``NAME=value`` of a telling name, a login in an address, an address's query, tokens with a known
beginning, private keys. So that it can go over everything, names of functions, paths, ids and numbers come out as they were.
"""

from __future__ import annotations

import re

from ray_rl_debug.model.foreign_text import as_text

MASK = "***"

_KEY = (
    r"(?:passw(?:or)?d|passphrase|(?<=[_.-])pwd|(?<![a-z])pwd(?=[\"'])|(?<![a-z_.-])pw(?=[\"']?\s{0,3}[=:])|(?<![a-z])pass(?=[\"']?\s{0,3}[=:])|secret"
    r"|(?<!invalidauth)token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|credentials?|authorization|cookie|signature)"
    r"(?:s|[_-]?(?:access[_-]?)?(?:id|key|value|str|hash|b64|\d{1,2}))?"
)
_NAMED = re.compile(
    rf"(?i)(?P<name>{_KEY}[\\\"']{{0,3}}\s{{0,3}}(?:=>|=|:(?!:))\s{{0,3}})(?P<quote>[\\\"']{{0,3}})(?P<scheme>(?:bearer|basic|token)\s{{1,3}})?"
    rf"(?:(?<=[\"'])(?P<quoted>[^\"'\\\n]{{2,400}})(?=[\"'\\])|(?P<value>(?:[^\s\"'\\,;)&}}\]/]|/(?![^\s/]{{0,60}}?{_KEY}[\"']?(?:\s{{0,3}}=|:\s))|(?<==)[\"'])+))"
)
_OPTION = re.compile(rf"(?i)(?P<name>(?:--|(?<![^\s/\"'|])-)[\w.-]{{0,40}}?{_KEY}\s{{1,3}})(?P<value>(?![-=:])(?:\"[^\"]*\"|'[^']*'|\S+))")
_LOGIN = re.compile(r"(?P<start>\b[a-z][a-z0-9+.-]{1,20}://?)[^\s/@:\"'<>]{0,128}:(?!\d{1,5}/)[^\s\"'<>]{1,256}@", re.IGNORECASE)
_USER = re.compile(r"(?P<start>\bhttps?://?)[^\s/@:\"'<>]{1,256}@", re.IGNORECASE)
_QUERY = re.compile(r"(?P<start>\b[a-z][a-z0-9+.-]{1,20}://[^\s?#\"'<>]{1,512}\?)[^\s\"'<>)]{2,}", re.IGNORECASE)
_HOOK = re.compile(
    r"(?P<start>\b(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)|(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks"
    r"|[\w.-]{1,80}\.webhook\.office\.com|outlook\.office\.com/webhook|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook"
    r"|hooks\.zapier\.com/hooks|api\.telegram\.org)/)[^\s\"'<>)]+",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"(?P<start>\b(?:[Bb]earer|BEARER)\s{1,3})(?=\S{0,200}[\d.=_-])[A-Za-z0-9+/_.=~-]{8,}"
    r"|(?P<basic>\b(?:[Bb]asic|BASIC)\s{1,3})(?=\S{0,200}[a-z]\S{0,200}[A-Z0-9=])[A-Za-z0-9+/]{8,}={0,2}(?!\S)"
)
_COOKIE = re.compile(r"(?i)(?P<start>\bcookie:\s{0,3})[^\n\"']+")
_KNOWN = re.compile(
    r"(?<![A-Za-z0-9_-])(?:sk-(?=[\w-]{0,40}\d)[A-Za-z0-9_-]{16,}|[srp]k_(?:live|test)_[A-Za-z0-9]{10,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{16,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w.-]{16,}"
    r"|eyJ[\w-]{8,}\.[\w.-]{8,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|dckr_pat_[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|nvapi-[\w-]{20,}|gsk_[A-Za-z0-9]{20,}"
    r"|r8_[A-Za-z0-9]{30,}|hvs\.[\w-]{20,}|tskey-[\w-]{16,}|dop_v1_[0-9a-f]{32,}|AGE-SECRET-KEY-[A-Z0-9]{20,}|lin_api_\w{20,})"
)
_PRIVATE = re.compile(r"(?P<start>-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)[\s\S]*?(?:(?=-----END)|\Z)")
_COMMAND = re.compile(
    r"(?i)(?P<start>\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b[^\n]{0,200}?\s-p\s?|\bredis-cli\b[^\n]{0,200}?\s-a\s{1,3}"
    r"|\b(?:curl|wget|http)\b[^\n]{0,200}?\s(?:-u|--user|--proxy-user)[ =]?)(?!-|\s)\S+"
)

_NAMES = ("pass", "pwd", "pw", "secret", "token", "key", "credential", "authorization", "cookie", "signature")
_BEGINNINGS = tuple(
    "sk- sk_ rk_ hf_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat glpat xox xapp AKIA ASIA AIza ya29 eyJ npm_ pypi- dckr SG. nvapi gsk_ r8_ hvs. tskey"
    " dop_v1 AGE- lin_api".split()
)
_COMMANDS = ("mysql", "mariadb", "sshpass", "redis-cli", "curl", "wget", "http")
_PARTING, _HEX, _RUN = re.compile(r"[-_+/=.]"), re.compile(r"[0-9a-f]{4,}"), re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# A count (max_tokens=1024), a rate, nothing, a variable of a shell, a repr, and what is masked already are no secrets.
_TRIVIAL = re.compile(r"(?i)[\d.,:%+-]+(?:[kmgt]?i?b?|s|ms|/s)|none|null|nil|true|false|\$.*|<.*|\*{3}.*|…|\[?redacted\]?")


_PLAIN = re.compile(r"[0-9.:\[\]]*|[0-9a-f]{1,64}|(?:pipe|socket|eventfd):\[[0-9]{1,20}\]|<[A-Za-z_]{1,14} at 0x[0-9a-f]{1,16}>").fullmatch
"""Addresses with a port, Ray's ids, pipes and objects: most text that no other node has, and nothing in it that any pattern here can find."""
_WORD, _WORDS = re.compile(r"[A-Za-z]?[a-z]{0,14}"), re.compile(r"\s{1,3}[a-z]{1,14}\b(?![=:])")


def mask(text: str) -> str:
    """`text` without the secrets in it; masking it again changes nothing."""
    return text if _PLAIN(text) else _searched(text)


def _searched(text: str) -> str:
    text = as_text(text)
    if any(map(text.__contains__, _BEGINNINGS)):
        text = _KNOWN.sub(MASK, text)
    if not ("=" in text or ":" in text or " " in text):
        return text  # a path, a name or an id, of which there are many
    low = text.lower()
    if "PRIVATE KEY" in text:
        text = _PRIVATE.sub(rf"\g<start>{MASK}", text)
    if " -" in text and any(program in low for program in _COMMANDS):
        text = _COMMAND.sub(rf"\g<start>{MASK}", text)
    if ":/" in text:  # a path takes one of two slashes away
        text = _LOGIN.sub(rf"\g<start>{MASK}@", text)
        text = _USER.sub(rf"\g<start>{MASK}@", text)
        text = _QUERY.sub(rf"\g<start>{MASK}", text)
    if "hook" in low or "telegram" in low:
        text = _HOOK.sub(rf"\g<start>{MASK}", text)
    if any(map(low.__contains__, _NAMES)):
        text = _COOKIE.sub(rf"\g<start>{MASK}", text)
        text = _OPTION.sub(_without_value, text)
        text = _NAMED.sub(_without_value, text)
    if "bearer" in low or "basic" in low:
        text = _BEARER.sub(lambda found: f"{found['start'] or found['basic']}{MASK}", text)
    return text


def has_secret(text: str) -> bool:
    """Would `mask` change it?"""
    return mask(text) != text


def is_random(word: str) -> bool:
    """Is it random letters of both cases and digits, rather than words run together (a symbol, the name of a model, a GPU's id)?

    Words of a name are some letters long; in 34 random characters runs of one kind last 1.9 on average, and 2.9 in one case of 100.
    """
    if not (any(c.isupper() for c in word) and any(c.islower() for c in word) and any(c.isdigit() for c in word)):
        return False
    pieces = (p for p in _PARTING.split(word) if not _HEX.fullmatch(p))
    runs = [run for piece in pieces for run in _RUN.findall(piece)]
    return bool(runs) and sum(map(len, runs)) < 2.9 * len(runs)


def _without_value(found: re.Match[str]) -> str:
    groups = found.groupdict()
    value = groups.get("quoted") or groups["value"] or ""
    if _TRIVIAL.fullmatch(value.strip("\"'")):
        return found[0]
    if not groups.get("quote") and found["name"][-1:].isspace() and _WORD.fullmatch(value) and _WORDS.match(found.string, found.end()):
        return found[0]  # a sentence: "asks for a token: using the one of", "--token is missing"
    return f"{found['name']}{groups.get('quote') or ''}{MASK}"
