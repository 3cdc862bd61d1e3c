//! A principal, an agent, a resolver with offers and a wallet, each in a folder of its own.

use crate::node::Node;
use crate::run::Home;
use json::{Value, json};

/// Everybody who takes part in a payment.
pub(crate) struct Market {
    /// The principal asks; its key signs intents and mandates.
    pub(crate) principal: Home,
    /// The agent pays; its ledger is here.
    pub(crate) agent: Home,
    pub(crate) agent_did: String,
    wallet_home: Home,
    pub(crate) wallet: Node,
    _resolver_home: Home,
    pub(crate) resolver: Node,
}

pub(crate) const CODE: &str = "LUNCH-TEST";

/// A key, and what its holder is called.
fn somebody(home: &Home) -> String {
    home.run(&["keys", "new"]).exits(0);
    let shown = home.run(&["keys", "show", "--json"]).exits(0).json();
    shown["did"].as_str().unwrap().to_owned()
}

impl Market {
    /// A market whose resolver has offers of these names and prices, and whose wallet holds these.
    pub(crate) fn new(name: &str, offers: &[(&str, &str)], holdings: Option<&Value>) -> Self {
        let home = |who: &str| Home::new(&format!("paying-{name}-{who}"));
        let (principal, agent, wallet_home, resolver_home) =
            (home("principal"), home("agent"), home("wallet"), home("resolver"));
        somebody(&principal);
        let agent_did = somebody(&agent);
        let lines: String = offers.iter().map(|(name, price)| format!("{}\n", offer(name, price))).collect();
        let data = resolver_home.path("data");
        resolver_home.run_with(&[], &lines, &["import", "-", "--data", &data]).exits(0);
        let resolver = Node::start(&resolver_home);
        let wallet = start_wallet(&wallet_home, holdings);
        Self { principal, agent, agent_did, wallet_home, wallet, _resolver_home: resolver_home, resolver }
    }

    /// Kills the wallet and starts it again on the same folder.
    pub(crate) fn restart_wallet(mut self) -> Self {
        let listen = format!("127.0.0.1:{}", self.wallet.port());
        // The old one is gone before the new one opens the folder.
        let spare = Node::start_with(&Home::new("paying-spare"), "127.0.0.1:0", &[]);
        drop(std::mem::replace(&mut self.wallet, spare));
        self.wallet = Node::start_with(&self.wallet_home, &listen, &["--role", "wallet"]);
        self
    }

    /// Asks for offers; writes `question.json` and `answer.json` where the agent finds them.
    pub(crate) fn ask(&self, change: &Value) {
        let mut draft = json!({
            "category": "commercial",
            "constraints": {"path": "/goods_identification/service_code", "operator": "eq", "value": CODE},
            "projection": {"include": ["/offer_id", "/provider_did", "/price"]},
            "budget": {
                "amount": "100.00", "currency": "EUR", "allocation": "ranked_top_k", "top_k": 3,
                "distribution": [0.5, 0.3, 0.2]
            },
            "payment_constraints": {"allowed_instruments": ["sepa-instant", "sepa-ct"], "preferred_instrument": "sepa-ct"}
        });
        merge(&mut draft, change);
        let draft = self.principal.file("draft.json", &draft.to_string());
        let (answer, question) = (self.agent.path("answer.json"), self.agent.path("question.json"));
        let arguments =
            ["ask", &draft, "--to", &self.resolver.url, "--save", &answer, "--save-intent", &question, "--no-receipt"];
        self.principal.run(&arguments).exits(0);
    }

    /// A mandate for the agent at the wallet; writes `mandate.json` where the agent finds it.
    pub(crate) fn permit(&self, change: &Value) -> String {
        let mut draft = json!({
            "agent_did": self.agent_did,
            "wallet_did": self.wallet.did,
            "constraints": {
                "max_single_payment": {"amount": "200.00", "currency": "EUR"},
                "max_daily_spend": {"amount": "300.00", "currency": "EUR"},
                "max_monthly_spend": {"amount": "1000.00", "currency": "EUR"},
                "allowed_instruments": ["sepa-instant", "sepa-ct", "card"]
            },
            "validity": {"not_before": "2026-01-01T00:00:00Z", "not_after": "2099-12-31T23:59:59Z"}
        });
        merge(&mut draft, change);
        let (draft, mandate) =
            (self.principal.file("mandate-draft.json", &draft.to_string()), self.agent.path("mandate.json"));
        self.principal.run(&["mandate", &draft, "-o", &mandate]).exits(0);
        mandate
    }

    /// The arguments of a payment.
    pub(crate) fn pay<'a>(&'a self, paths: &'a [String; 3], more: &[&'a str]) -> Vec<&'a str> {
        let [answer, question, mandate] = paths;
        let usual = ["pay", answer, "--intent", question, "--mandate", mandate, "--to", &self.wallet.url];
        [&usual[..], more].concat()
    }

    pub(crate) fn paths(&self) -> [String; 3] {
        ["answer.json", "question.json", "mandate.json"].map(|name| self.agent.path(name))
    }

    /// The wallet's book.
    pub(crate) fn book(&self) -> String {
        self.wallet_home.read("data/wallet.ndjson")
    }

    pub(crate) fn intent_id(&self) -> String {
        let question: Value = serde_json::from_str(&self.agent.read("question.json")).unwrap();
        question["intent_id"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn start_wallet(home: &Home, holdings: Option<&Value>) -> Node {
    let file = holdings.map(|holdings| home.file("holdings.json", &holdings.to_string()));
    let mut more = vec!["--role", "wallet"];
    if let Some(file) = &file {
        more.extend(["--holdings", file]);
    }
    Node::start_with(home, "127.0.0.1:0", &more)
}

fn offer(name: &str, price: &str) -> Value {
    json!({"record": {
        "offer_id": format!("urn:oap:offer:{name}"),
        "intent_id": "urn:oap:intent:any",
        "provider_did": format!("did:web:{name}.example"),
        "issued_at": "2026-01-01T08:00:00Z",
        "valid_until": "2099-12-31T23:00:00Z",
        "price": {"amount": price, "currency": "EUR"},
        "goods_identification": {"service_code": CODE},
        "delivery_commitment": {"committed_by": "2099-11-26T17:00:00Z"},
        "commitment_endpoint": format!("https://{name}.example/accept"),
        "signatures": [{"by": format!("did:web:{name}.example"), "alg": "EdDSA", "value": "AAAA"}]
    }})
}

/// Changes a document as RFC 7396 says.
pub(crate) fn merge(base: &mut Value, change: &Value) {
    let (Value::Object(members), Value::Object(changes)) = (&mut *base, change) else {
        *base = change.clone();
        return;
    };
    for (name, value) in changes {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
