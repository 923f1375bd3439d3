"""The certificates that Ray itself was given, for the connections between a companion and its watchers; both sides show theirs."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from ray_rl_debug.model.errors import UsageError

USE = "RAY_USE_TLS"
CERTIFICATE, KEY, AUTHORITY = "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"
NAMES = (USE, CERTIFICATE, KEY, AUTHORITY)


def is_on(env: Mapping[str, str]) -> bool:
    """As Ray decides it."""
    return env.get(USE, "0").lower() in ("1", "true")


def context(env: Mapping[str, str], *, is_server: bool) -> ssl.SSLContext | None:
    """None where Ray uses no TLS.

    Raises:
        UsageError: Ray is told to use it, and its certificates cannot be read.
    """
    if not is_on(env):
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.check_hostname = False  # Ray's certificates name addresses as they like; who it is, the seal proves
    made.verify_mode = ssl.CERT_REQUIRED
    try:
        made.load_cert_chain(env[CERTIFICATE], env[KEY])
        made.load_verify_locations(env[AUTHORITY])
    except (KeyError, OSError) as e:
        missing = f"{e.args[0]} is not set" if isinstance(e, KeyError) else str(e)
        raise UsageError(f"Ray is told to use TLS ({USE}), and its certificates cannot be used: {missing}", hint=f"set {', '.join(NAMES)}") from e
    return made
