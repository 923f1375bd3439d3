"""Two hundred secrets that nobody has, each in the form that programs, shells, drivers and services write them."""

from __future__ import annotations

import random
import string

COUNT = 200
_TEXT = string.ascii_letters + string.digits
_FORMS = (
    "PASSWORD={v}",
    "DB_PASSWORD='{v}'",
    "HF_TOKEN={v}",
    "AWS_SECRET_ACCESS_KEY={v}/{v}",
    "export WANDB_API_KEY={v}; python train.py",
    "--password={v}",
    "--api-key {v}",
    "--db-passwd '{v}'",
    "mysql -u root -p{v} runs",
    "curl -u me:{v} http://host/x",
    "https://user:{v}@host/path",
    "postgres://u:{v}@db.local:5432/runs",
    "mongodb+srv://u:p%40{v}@cluster0.mongodb.net/x",
    "redis://:{v}@cache:6379/0",
    "https://{v}@github.com/org/repo.git",
    "https://bucket.s3.amazonaws.com/key?X-Amz-Signature={v}&X-Amz-Date=1",
    "https://hooks.slack.com/services/T000/B000/{v}",
    "https://discord.com/api/webhooks/123/{v}",
    "Authorization: Bearer {v}",
    "headers={{'Authorization': 'Basic {v}='}}",
    'config {{"password": "{v}", "user": "me"}}',
    'body {{\\"api_key\\": \\"{v}\\"}}',
    "client_secret: {v}",
    "Cookie: sid={v}; theme=dark",
    "sk-proj-{v}",
    "hf_{v}{v}",
    "ghp_{v}{v}",
    "xoxb-1234-{v}",
    "eyJhbGciOiJIUzI1NiJ9.{v}.{v}",
    "-----BEGIN PRIVATE KEY----- {v} -----END PRIVATE KEY-----",
    "access_key=AKIA{v}",
    "auth_token => {v}",
    "nvapi-{v}{v}",
)


def make_secrets(seed: int = 14) -> list[tuple[str, str]]:
    """The secret alone, and the text that holds it."""
    chance = random.Random(seed)
    made = []
    for number in range(COUNT):
        value = "".join(chance.choice(_TEXT) for _ in range(chance.randint(14, 24))) + "7aQ"
        made.append((value, _FORMS[number % len(_FORMS)].format(v=value)))
    return made
