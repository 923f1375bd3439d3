"""Answers of servers in the forms of vLLM, SGLang and OpenAI, as they come over a real connection."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ray_rl_debug.endpoints.openai_client import Endpoint, Sampling
from ray_rl_debug.endpoints.prompts import Prompt
from ray_rl_debug.model.errors import EndpointError, UsageError

pytest.importorskip("openai", reason="pip install 'ray-rl-debug[rollout]'")
CHOICE = {
    "message": {"content": "a"},
    "finish_reason": "stop",
    "logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"token": "<end>", "logprob": -1.5}]},
}
FORMS: dict[str, dict[str, Any]] = {
    "vllm": {"choices": [{**CHOICE, "token_ids": [7, 1], "stop_reason": None}], "prompt_token_ids": [2, 3]},
    "sglang": {"choices": [{**CHOICE, "response_token_ids": [7, 1], "prompt_token_ids": [2, 3], "matched_stop": 1}]},
    "openai": {"choices": [CHOICE]},
    "strange": {"choices": []},
}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    class Engine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"data": [{"id": "tiny"}]})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer({**FORMS[request.param], "usage": {"prompt_tokens": 2, "completion_tokens": 2}})

        def answer(self, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_address[1]}/v1"
    listening.shutdown()
    listening.server_close()


@pytest.mark.parametrize(
    ("server", "ids", "prompt_ids", "stop"),
    [("vllm", (7, 1), (2, 3), None), ("sglang", (7, 1), (2, 3), 1), ("openai", None, None, None)],
    indirect=["server"],
)
def test_each_form_is_understood(server: str, ids: object, prompt_ids: object, stop: object) -> None:
    got = Endpoint(server, retries=0).answer(Prompt(key="q", messages=({"role": "user", "content": "x"},)), Sampling())
    assert (got.ids, got.prompt_ids, got.stop, got.finish) == (ids, prompt_ids, stop, "stop")
    assert (got.text, got.pieces, got.logprobs) == ("a", ("a", "<end>"), (-0.5, -1.5))
    assert (got.prompt_count, got.count, got.error) == (2, 2, None)


@pytest.mark.parametrize("server", ["strange"], indirect=True)
def test_a_strange_answer_is_an_error_of_this_answer(server: str) -> None:
    got = Endpoint(server, retries=0).answer(Prompt(key="q", messages=({"role": "user", "content": "x"},)), Sampling())
    assert got.error is not None
    assert "does not answer as OpenAI's interface does" in got.error


class Torn(BaseHTTPRequestHandler):
    """Whatever is asked, half a JSON document; `status` is its own."""

    status = 200

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b'{"data": [')

    do_GET = do_POST = answer

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def torn(request: pytest.FixtureRequest) -> Iterator[str]:
    listening = ThreadingHTTPServer(("127.0.0.1", 0), type("Torn", (Torn,), {"status": request.param}))
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_address[1]}/v1"
    listening.shutdown()
    listening.server_close()


@pytest.mark.parametrize(
    ("torn", "said", "hint"),
    [
        (200, "does not answer as OpenAI's interface does", "curl ADDRESS/models"),
        (401, "does not list its models: AuthenticationError", "OPENAI_API_KEY"),
        (503, "does not list its models: InternalServerError", "look at the log of the server"),
    ],
    indirect=["torn"],
)
def test_a_server_that_does_not_list_its_models_has_a_hint_of_its_own(torn: str, said: str, hint: str) -> None:
    with pytest.raises(EndpointError, match=said) as e:
        Endpoint(torn, retries=0)
    assert hint in e.value.hint


@pytest.mark.parametrize("torn", [200], indirect=True)
def test_half_a_document_is_an_error_of_this_answer(torn: str) -> None:
    got = Endpoint(torn, "tiny", retries=0).answer(Prompt(key="q", messages=({"role": "user", "content": "x"},)), Sampling())
    assert got.error is not None and "JSON" in got.error


def test_an_address_is_one() -> None:
    with pytest.raises(UsageError, match="'localhost:8000' is no address of a server"):
        Endpoint("localhost:8000", "tiny")


def test_each_prompt_and_sample_has_luck_of_its_own() -> None:
    """One seed for all would give all prompts the same draws, and what chance does once would count as often as there are prompts."""
    asked = Sampling(temperature=1.0, seed=1)
    seeds = [asked.seed_of(f"q{n}", sample) for n in range(20) for sample in range(4)]
    assert len(set(seeds)) == len(seeds)
    assert asked.seed_of("q3", 2) == seeds[14]
    assert Sampling(temperature=1.0).seed_of("q3", 2) is None
