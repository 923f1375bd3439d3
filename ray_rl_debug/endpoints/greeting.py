"""Is an inference server there at all? Asked once before an agent's episodes: each would fail in its own way, or hide it behind a reward of 0.

Only what cannot be an inference server, or a healthy one, is told. A server without the route, or that wants a key of its own, may be right for
the agent. Python's own client is used: the interpreter of the agent has that of OpenAI, ours need not.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

from ray_rl_debug.model.errors import EndpointError

WITHIN_S = 10.0
HEAD_BYTES = 4096
STAND_IN = "start the server, or give its address as http://HOST:PORT/v1; with --stand-in a small server of ours answers"
SICK = "look at the log of the server; a hung one is told by: rayrl-debug snapshot --here --pid PID"


def greet(url: str, api_key: str, within_s: float = WITHIN_S) -> None:
    """Ask a server for its models.

    Raises:
        EndpointError: it cannot be reached, gives no answer, answers with status 5xx, or is a web site.
    """
    asked = f"{url}/models"
    request = urllib.request.Request(asked, headers={"Authorization": f"Bearer {api_key}", "Accept": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=within_s) as answer:
            kind, text = answer.headers.get_content_type(), answer.read1(HEAD_BYTES)
    except urllib.error.HTTPError as e:
        if e.code >= 500:
            raise EndpointError(f"{asked} answers with status {e.code}: {e.reason}", hint=SICK) from e
        return
    except (urllib.error.URLError, OSError, http.client.HTTPException, ValueError) as e:
        raise _unreachable(asked, e, within_s) from e
    if kind == "text/html" or text.lstrip()[:1] == b"<":
        raise EndpointError(f"{asked} answers with a page for people: no inference server is there", hint=STAND_IN)


def _unreachable(asked: str, error: Exception, within_s: float) -> EndpointError:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return EndpointError(f"{asked} gives no answer in {within_s:g} s", hint=SICK)
    if isinstance(error, http.client.HTTPException) or isinstance(reason, ConnectionResetError):
        return EndpointError(f"{asked} ends the connection without an answer", hint=SICK)
    said = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return EndpointError(f"{asked} cannot be reached: {said}", hint=STAND_IN)
