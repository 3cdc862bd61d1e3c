"""The public Python library `anp`, unmodified, as a server that proves who sends a request.

`host` shows the caller's DID document over TLS on localhost. `serve` answers `/whoami` behind the library's own middleware:
`cold` as it is, looking the document up for every request, `warm` with the document at hand, as a cache would have it.
"""

import datetime
import http.server
import json
import logging
import os
import socket
import ssl
import sys
import threading
import time

FOLDER, ROLE = sys.argv[1:3]
AUTHORITY = os.path.join(FOLDER, "authority.pem")
SERVER = os.path.join(FOLDER, "server.pem")
DOCUMENT = os.path.join(FOLDER, "did.json")


def certificates():
    """A certificate authority and a certificate for localhost."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def certificate(subject, key, by, extension):
        def name(text):
            return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

        now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)
        builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("authority"))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - day).not_valid_after(now + day)
        made = builder.add_extension(extension, critical=False).sign(by, hashes.SHA256())
        return made.public_bytes(serialization.Encoding.PEM)

    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    with open(AUTHORITY, "wb") as file:
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        file.write(certificate("authority", authority, authority, constraints))
    with open(SERVER, "wb") as file:
        file.write(certificate("localhost", server, authority, names))
        form = serialization.PrivateFormat.PKCS8
        file.write(server.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


if os.environ.get("SSL_CERT_FILE") != AUTHORITY:
    if ROLE == "host":
        certificates()
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "SSL_CERT_FILE": AUTHORITY})

logging.disable(logging.CRITICAL)

import uvicorn  # noqa: E402
from anp.authentication import did_wba_verifier  # noqa: E402
from anp.authentication.did_wba_verifier import DidWbaVerifierConfig  # noqa: E402
from anp.openanp.middleware import create_auth_middleware  # noqa: E402
from fastapi import FastAPI, Request  # noqa: E402



class Host(http.server.BaseHTTPRequestHandler):
    """Shows the caller's document."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with open(DOCUMENT, "rb") as file:
            body = file.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def host():
    """Hosts the document until nobody is there any more."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SERVER)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)


def serve(warm):
    """Starts the library's server."""
    if warm:
        with open(DOCUMENT, encoding="utf-8") as file:
            document = json.load(file)

        async def at_hand(*_, **__):
            return document

        did_wba_verifier.resolve_did_wba_document = at_hand
    app = FastAPI()
    secret = "x" * 64
    config = DidWbaVerifierConfig(jwt_private_key=secret, jwt_public_key=secret, jwt_algorithm="HS256")
    app.middleware("http")(create_auth_middleware(config))

    @app.get("/whoami")
    async def whoami(request: Request):
        return {"did": request.state.did}

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)


if ROLE == "host":
    host()
else:
    serve(ROLE == "warm")
# Whoever started this holds the other end.
sys.stdin.read()
