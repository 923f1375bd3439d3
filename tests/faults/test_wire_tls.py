"""Where Ray uses TLS, so do the companion and its watchers, with the same certificates."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.wire_peers import HOST, Proxy, is_closed, is_served, order_for, server, watcher

from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.watch import tls
from ray_rl_debug.watch.seal import knock
from ray_rl_debug.watch.watcher import Watcher

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl, which makes the certificates")


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def authority(folder: Path, name: str) -> Path:
    """A certificate authority with one certificate for a node: `ca.pem`, `node.pem`, `node.key`."""
    made = folder / name
    made.mkdir()
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", made / "ca.key", "-out", made / "ca.pem", "-days", "2", "-subj", f"/CN={name}")
    openssl("req", *key, "-keyout", made / "node.key", "-out", made / "node.csr", "-subj", "/CN=node")
    openssl(
        "x509",
        "-req",
        "-in",
        made / "node.csr",
        "-CA",
        made / "ca.pem",
        "-CAkey",
        made / "ca.key",
        "-CAcreateserial",
        "-out",
        made / "node.pem",
        "-days",
        "2",
    )
    return made


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    made = authority(tmp_path, "ours")
    for name, value in {tls.USE: "1", tls.CERTIFICATE: made / "node.pem", tls.KEY: made / "node.key", tls.AUTHORITY: made / "ca.pem"}.items():
        monkeypatch.setenv(name, str(value))
    return made


def test_strangers_with_other_certificates_or_none(ours: Path, tmp_path: Path) -> None:
    """Ray uses TLS; strangers come in clear, without a certificate, and with one of another authority.

    They are turned away; watchers with Ray's certificates come in, and what they say cannot be read on the way.
    """
    foreign = authority(tmp_path, "foreign")
    with server() as one, Proxy(one.port) as proxy:
        assert one.uses_tls
        watcher(one, "n1", port=proxy.port)
        for n in range(20):
            assert is_served(one, "n1"), n
        assert b"Pong" not in proxy.recorded["watcher"]
        assert not proxy.recorded["watcher"].startswith(b"rrdw")
        with socket.create_connection((HOST, one.port)) as clear:
            clear.sendall(knock(one.invite("n2"), bytes(32)))
            assert is_closed(clear)
        for certificate in (None, foreign):
            context = ssl.create_default_context(cafile=str(ours / "ca.pem"))
            context.check_hostname = False
            if certificate is not None:
                context.load_cert_chain(certificate / "node.pem", certificate / "node.key")
            with socket.create_connection((HOST, one.port)) as plain:
                try:
                    with context.wrap_socket(plain) as stranger:
                        stranger.sendall(knock(one.invite("n2"), bytes(32)))
                        assert stranger.recv(1) == b""
                except (ssl.SSLError, ConnectionError):
                    pass  # it hears of the refusal in the handshake or after it
        assert set(one.nodes) == {"n1"}
        assert is_served(one, "n1")


def test_impostor_without_ray_certificates(ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate of who listens at the companion's port is of another authority; or this node does not know Ray's.

    The watcher does not speak to it, and never in clear.
    """
    foreign = authority(tmp_path, "foreign")
    monkeypatch.setenv(tls.CERTIFICATE, str(foreign / "node.pem"))
    monkeypatch.setenv(tls.KEY, str(foreign / "node.key"))
    with server() as impostor, Proxy(impostor.port) as proxy:
        order = order_for(impostor, "n1", port=proxy.port)
        monkeypatch.setenv(tls.CERTIFICATE, str(ours / "node.pem"))
        monkeypatch.setenv(tls.KEY, str(ours / "node.key"))
        with pytest.raises(ssl.SSLCertVerificationError):
            Watcher(order, connect_s=0.5).serve()
        monkeypatch.setenv(tls.USE, "0")
        with pytest.raises(OSError, match="certificates are not known here"):
            Watcher(order, connect_s=0.5).serve()
        assert b"rrdw" not in proxy.recorded["watcher"]


def test_certificates_that_cannot_be_read(ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray is told to use TLS, and a certificate file is missing or damaged.

    One sentence says so; nothing is sent in clear instead.
    """
    (ours / "node.pem").write_text("not a certificate")
    with pytest.raises(UsageError, match="certificates cannot be used"), server():
        pass
    monkeypatch.delenv(tls.KEY)
    with pytest.raises(UsageError, match="RAY_TLS_SERVER_KEY is not set"), server():
        pass
