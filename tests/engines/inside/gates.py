"""AReaL's two gate calls mapped to vLLM's own, for ``vllm serve --middleware gates.ArealGates``: AReaL's own server does not run with this vLLM."""

CALLS = {"/areal_pause_generation": ("/pause", b"mode=abort"), "/areal_continue_generation": ("/resume", b"")}


class ArealGates:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"] in CALLS:
            path, query = CALLS[scope["path"]]
            scope = {**scope, "path": path, "raw_path": path.encode(), "query_string": query}
        await self.app(scope, receive, send)
