"""The public Python library `anp`, unmodified, as a peer: one JSON request on each line, one JSON answer.

It hosts DID documents over TLS on localhost under a certificate authority of its own, which the library trusts by the
environment, because its verifier has no other way to be told.
"""

import asyncio
import datetime
import http.server
import json
import logging
import os
import ssl
import sys
import threading
import time

FOLDER = sys.argv[1]
AUTHORITY = os.path.join(FOLDER, "authority.pem")


def certificates():
    """A certificate authority and a certificate for localhost."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def name(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def pem(key):
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return key.private_bytes(encoding, form, serialization.NoEncryption())

    def certificate(subject, issuer, key, by, extension):
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1))
        made = builder.add_extension(extension, critical=False).sign(by, hashes.SHA256())
        return made.public_bytes(serialization.Encoding.PEM)

    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    with open(AUTHORITY, "wb") as file:
        file.write(certificate("authority", "authority", authority, authority, constraints))
    with open(os.path.join(FOLDER, "server.pem"), "wb") as file:
        file.write(certificate("localhost", "authority", server, authority, names))
        file.write(pem(server))


if os.environ.get("SSL_CERT_FILE") != AUTHORITY:
    certificates()
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "SSL_CERT_FILE": AUTHORITY})

logging.disable(logging.CRITICAL)

from anp.anp_crawler.anp_client import ANPClient  # noqa: E402
from anp.authentication import did_wba, http_signatures  # noqa: E402
from anp.authentication.did_wba_verifier import (  # noqa: E402
    DidWbaVerifier,
    DidWbaVerifierConfig,
    DidWbaVerifierError,
)
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec  # noqa: E402

DOCUMENTS = {}
KEYS = {}
CLIENTS = {}


class Host(http.server.BaseHTTPRequestHandler):
    """Shows the documents that were published."""

    def do_GET(self):
        document = DOCUMENTS.get(self.path)
        body = json.dumps(document).encode()
        self.send_response(200 if document else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def host():
    """Starts the host and gives its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


SECRET = "x" * 64
VERIFIER = DidWbaVerifier(
    DidWbaVerifierConfig(jwt_private_key=SECRET, jwt_public_key=SECRET, jwt_algorithm="HS256")
)


def signer(did):
    """The callback with which the library signs as somebody."""
    key = serialization.load_pem_private_key(KEYS[did], password=None)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return lambda content, _: key.sign(content, ec.ECDSA(hashes.SHA256()))
    return lambda content, _: key.sign(content)


def create(port, profile, segments):
    """Makes a name with the library's own function."""
    document, keys = did_wba.create_did_wba_document(
        "localhost", port=port, path_segments=segments, did_profile=profile
    )
    KEYS[document["id"]] = keys["key-1"][0]
    return {"document": document}


def sign(document, method, url, body):
    """The header fields with which the library signs a request."""
    callback = signer(document["id"])
    headers = http_signatures.generate_http_signature_headers(document, url, method, callback, body=body)
    return {"headers": headers, "now": int(time.time())}


def legacy(document, host):
    """The older header, as the library writes it."""
    return {"header": did_wba.generate_auth_header(document, host, signer(document["id"])), "now": int(time.time())}


def publish(path, document):
    """Puts a document on the host."""
    DOCUMENTS[path] = document
    return {"now": int(time.time())}


def verify(method, url, headers, body):
    """Who the library's verifier says a request is from."""
    try:
        result = asyncio.run(VERIFIER.verify_request(method, url, headers, body.encode()))
        return {"did": result["did"]}
    except DidWbaVerifierError as error:
        return {"refused": error.status_code, "because": str(error)}


def call(document, url, method="GET", body=None, fresh=False):
    """Asks a node with the library's own client, which keeps its tokens from call to call."""
    did = document["id"]
    if fresh or did not in CLIENTS:
        paths = [os.path.join(FOLDER, name) for name in ("did.json", "key.pem")]
        with open(paths[0], "w", encoding="utf-8") as file:
            json.dump(document, file)
        with open(paths[1], "wb") as file:
            file.write(KEYS[did])
        CLIENTS[did] = ANPClient(*paths)
        CLIENTS[did].auth_client._load_did_document()
        key = CLIENTS[did].auth_client._load_private_key()
        CLIENTS[did].auth_client._load_private_key = lambda: key
    reply = asyncio.run(CLIENTS[did].fetch_url(url, method=method, body=body))
    tokens = sorted(CLIENTS[did].auth_client.tokens)
    return {"status": reply["status_code"], "text": reply["text"], "tokens": tokens}


def kept(document):
    """Where the library finds a name and its key."""
    paths = [os.path.join(FOLDER, f"{document['id'].rsplit(':', 1)[-1]}.{name}") for name in ("json", "pem")]
    with open(paths[0], "w", encoding="utf-8") as file:
        json.dump(document, file)
    with open(paths[1], "wb") as file:
        file.write(KEYS[document["id"]])
    return paths


def discover(document, url, method, params):
    """Finds an agent with the library's own client, lists its tools and calls one."""
    from anp.authentication import DIDWbaAuthHeader
    from anp.openanp import RemoteAgent

    async def run():
        agent = await RemoteAgent.discover(url, DIDWbaAuthHeader(*kept(document)))
        tools = [tool["function"]["name"] for tool in agent.tools]
        result = await agent.call(method, **params)
        return {"name": agent.name, "methods": list(agent.method_names), "tools": tools, "result": result}

    return asyncio.run(run())


def crawl(document, url, tool, arguments):
    """Reads an agent with the library's crawler, lists its tools and calls one."""
    from anp.anp_crawler.anp_crawler import ANPCrawler

    async def run():
        crawler = ANPCrawler(*kept(document))
        await crawler.fetch_text(url)
        return {"tools": crawler.list_available_tools(), "result": await crawler.execute_tool_call(tool, arguments)}

    return asyncio.run(run())


def agent(port):
    """Starts the library's own server with an agent that adds, behind its own verifier; `port` is that of the names."""
    import socket

    import uvicorn
    from anp.openanp import AgentConfig, Context, anp_agent, interface
    from anp.openanp.middleware import create_auth_middleware
    from fastapi import FastAPI

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"https://localhost:{listener.getsockname()[1]}/calc/ad.json"
    document, _ = did_wba.create_did_wba_document(
        "localhost", port=port, path_segments=["calc"], agent_description_url=url
    )

    @anp_agent(AgentConfig(name="Calc", did=document["id"], description="Adds.", prefix="/calc"))
    class Calc:
        @interface
        async def add(self, a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        @interface(mode="link")
        async def whoami(self, ctx: Context) -> dict:
            """Say who calls."""
            return {"did": ctx.did}

    app = FastAPI()
    app.include_router(Calc.router())
    config = DidWbaVerifierConfig(jwt_private_key=SECRET, jwt_public_key=SECRET, jwt_algorithm="HS256")
    app.middleware("http")(create_auth_middleware(config))
    pem = os.path.join(FOLDER, "server.pem")
    server = uvicorn.Server(uvicorn.Config(app, ssl_certfile=pem, ssl_keyfile=pem, log_level="critical"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return {"url": url, "document": document}


OPERATIONS = {
    function.__name__: function
    for function in (create, sign, legacy, publish, verify, call, discover, crawl, agent)
}

print(json.dumps({"port": host()}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(OPERATIONS[request.pop("do")](**request)), flush=True)
