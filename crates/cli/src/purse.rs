//! RFC 0020 B.1: a wallet that we ask over HTTP; its refusals count only when they are proved, because they free money.

use crate::failure::Failure;
use crate::files::Text;
use crate::ledger::did_document;
use json::{Document, Node, Pointer};
use node::{Client, ClientError, Reply};
use payment::{Code, Keyring, Refusal};
use std::time::Duration;
use tokio::runtime::Runtime;
use trust::{Did, Method, Signed};

/// Attempts when nothing comes back.
const ATTEMPTS: u32 = 3;
/// How long we wait after the first of them.
const PAUSE: Duration = Duration::from_millis(300);

/// A wallet, and how to reach it.
pub(crate) struct Purse {
    runtime: Runtime,
    client: Client,
    wallet: Did,
}

/// What a wallet said.
pub(crate) enum Said {
    /// A document; who signed it is for the reader to check.
    Document(Document),
    /// No, under the wallet's signature.
    No(Box<No>),
}

/// A proved refusal.
pub(crate) struct No {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) at: Pointer,
}

impl No {
    /// The refusal as a failure of the command.
    pub(crate) fn failure(&self, address: &str) -> Failure {
        let failure = Failure::refused(&self.message).at(format!("{}, refused by {address}", self.at));
        let failure = failure.coded(self.code.clone(), &self.at);
        match crate::advice::on(&self.code) {
            Some(help) => failure.help(help),
            None => failure,
        }
    }
}

impl Purse {
    /// Prepares to ask the wallet that a mandate names.
    pub(crate) fn new(to: &str, wallet: &Did) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::files(format!("nothing can be sent: {error}")))?;
        let client = Client::new(to).map_err(|error| Failure::usage(error.to_string()).help(error.advice()))?;
        Ok(Self { runtime, client, wallet: wallet.clone() })
    }

    /// The address of the wallet.
    pub(crate) fn address(&self) -> &str {
        self.client.address()
    }

    /// The wallet's keys, where they are not in its name and nobody brought them along: from its own host.
    pub(crate) fn with_keys(&self, keys: Keyring) -> Result<Keyring, Failure> {
        if self.wallet.method() == Method::Key || keys.of(&self.wallet).is_ok() {
            return Ok(keys);
        }
        let url = self.wallet.document_url().unwrap_or_default();
        let reply = self.runtime.block_on(self.client.get_own(&url)).map_err(|error| unreached(&error))?;
        let reply = reply.ok_or_else(|| {
            Failure::refused(format!("the keys of {} are not at the address that is asked", self.wallet))
                .help("hand its DID document over with --did-document FILE")
        })?;
        let text = Text { name: url, bytes: reply.body };
        let document = text.document(&json::Limits::DOCUMENT)?;
        Ok(keys.with(did_document(&text, &document)?))
    }

    /// Sends a document; what does not arrive is sent again, since the same message has the same effect.
    pub(crate) fn post(&self, path: &[&str], body: &[u8], keys: &Keyring) -> Result<Said, Failure> {
        let mut attempt = 1;
        let reply = loop {
            match self.runtime.block_on(self.client.post(path, None, body.to_vec())) {
                Ok(reply) => break reply,
                Err(error) if attempt >= ATTEMPTS => return Err(unreached(&error)),
                Err(_) => std::thread::sleep(PAUSE * attempt),
            }
            attempt += 1;
        };
        self.read(reply, keys)
    }

    fn read(&self, reply: Reply, keys: &Keyring) -> Result<Said, Failure> {
        let foreign = || {
            let address = self.address();
            let told = format!("{address} does not answer like a wallet: HTTP status {}", reply.status);
            Failure::files(told).help("check the address; a wallet is started with `rialto serve --role wallet`")
        };
        let document = Document::parse(&reply.body, &json::Limits::OURS).map_err(|_| foreign())?;
        let Some(error) = document.root().get("error").filter(|error| error.get("details").is_some()) else {
            return if (200..300).contains(&reply.status) { Ok(Said::Document(document)) } else { Err(foreign()) };
        };
        let details = error.get("details");
        let text = |name: &str| details.and_then(|details| details.get(name)).and_then(Node::as_str);
        if text("resolver_did") != Some(self.wallet.as_str()) {
            return Err(Failure::refused(format!("{} is not the wallet of the mandate", self.address()))
                .help(format!("the mandate names {}; ask that one, or use a mandate for this one", self.wallet)));
        }
        prove(&document, &self.wallet, keys).map_err(|refusal| crate::ledger::refused(self.address(), &refusal))?;
        Ok(Said::No(Box::new(No {
            code: text("code").unwrap_or("refused").to_owned(),
            message: error.get("message").and_then(Node::as_str).unwrap_or("the wallet refuses").to_owned(),
            at: text("pointer").and_then(|at| Pointer::parse(at).ok()).unwrap_or_else(Pointer::root),
        })))
    }
}

fn prove(document: &Document, wallet: &Did, keys: &Keyring) -> Result<(), Refusal> {
    let keys = keys.of(wallet)?;
    match Signed::read(document).and_then(|signed| signed.verify_with(&keys)) {
        Ok(_) => Ok(()),
        Err(error) => Err(Refusal::new(Code::Below(error.code()), error.problem.to_string()).placed(error.at)),
    }
}

fn unreached(error: &ClientError) -> Failure {
    Failure::files(error.to_string()).help(error.advice())
}
