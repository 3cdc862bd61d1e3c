//! RFC 0020 B.3: `rialto pay` killed at every call that it makes to its disk and to the wallet, in turn, and run again.
//!
//! A resolver and a wallet live through all of it. For each call there is a question of its own; the payment is killed
//! there and run a second time. Then the ledger must be sound, and the wallet's own book must say that each of the three
//! candidates was paid once, and all of them the budget.

use super::program::{Program, Running};
use super::script::Faults;
use anyhow::{Context, Result, ensure};
use json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Calls that a payment makes to its disk and to the wallet.
const CALLS: [&str; 8] = ["mkdir", "ftruncate", "write", "fdatasync", "fsync", "rename", "sendto", "writev"];
/// More calls of one kind than any payment makes.
const CALLS_MAX: usize = 1_000;
/// What is paid, in cents: all of the budget.
const BUDGET_CENTS: u64 = 10_000;

/// Kills a payment at every `stride`-th call of each kind; `progress` hears of every kill.
pub fn payment(program: &Program, stride: usize, progress: &mut dyn FnMut(&Faults)) -> Result<Faults> {
    let begun = super::start();
    let folder = tempfile::tempdir()?;
    let market = Market::open(program, folder.path())?;
    let mut faults = Faults::default();
    for kind in CALLS {
        for call in (1..CALLS_MAX).step_by(stride.max(1)) {
            if !market.play(kind, call, &mut faults)? {
                break;
            }
            faults.note("kills");
            faults.note(&format!("kills at {kind}"));
            faults.seconds = begun.elapsed().as_secs_f64();
            progress(&faults);
        }
    }
    faults.seconds = begun.elapsed().as_secs_f64();
    Ok(faults)
}

/// Everybody who takes part.
struct Market {
    binary: PathBuf,
    folder: PathBuf,
    resolver: Running,
    wallet: Running,
    book: PathBuf,
}

impl Market {
    fn open(program: &Program, folder: &Path) -> Result<Self> {
        let place = |name: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            fs::create_dir_all(&path)?;
            Ok(path)
        };
        let (resolver, wallet) = (program.at(&place("resolver")?), program.at(&place("wallet")?));
        let offers: String = ["arno", "brenta", "cecina"].map(|name| format!("{}\n", offer(name))).concat();
        let offers_file = folder.join("offers.ndjson");
        fs::write(&offers_file, offers)?;
        let binary = program.binary().to_owned();
        let imported =
            Command::new(&binary).arg("import").arg(&offers_file).arg("--data").arg(resolver.data()).output()?;
        succeeded(&imported, "import")?;
        let book = wallet.data().join("wallet.ndjson");
        let wallet = wallet.with(&["--role".to_owned(), "wallet".to_owned()]);
        let (resolver, wallet) = (resolver.serve()?.0, wallet.serve()?.0);
        let market = Self { binary, folder: folder.to_owned(), resolver, wallet, book };
        for who in ["principal", "agent"] {
            place(who)?;
            succeeded(&market.run(who, &["keys", "new"])?, "keys new")?;
        }
        market.permit()?;
        Ok(market)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn command(&self, who: &str, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("RIALTO_HOME", self.folder.join(who));
        command
    }

    fn run(&self, who: &str, arguments: &[&str]) -> Result<Output> {
        Ok(self.command(who, &self.binary).args(arguments).output()?)
    }

    fn permit(&self) -> Result<()> {
        let agent = read(&self.run("agent", &["keys", "show", "--json"])?.stdout)?;
        let health = read(&self.wallet.get("/health")?.body)?;
        let most = json!({"amount": "100000000.00", "currency": "EUR"});
        let draft = json!({
            "agent_did": agent.get("did"),
            "wallet_did": health.get("did"),
            "constraints": {"max_single_payment": most, "max_daily_spend": most, "max_monthly_spend": most},
            "validity": {"not_before": "2026-01-01T00:00:00Z", "not_after": "2099-12-31T23:59:59Z"},
        });
        fs::write(self.path("draft.json"), draft.to_string())?;
        let signed = self.run("principal", &["mandate", &self.path("draft.json"), "-o", &self.path("mandate.json")])?;
        succeeded(&signed, "mandate")
    }

    /// A question of its own for each kill; gives its name.
    fn ask(&self) -> Result<String> {
        let draft = json!({
            "category": "commercial",
            "constraints": {"path": "/goods_identification/service_code", "operator": "eq", "value": "CRASH"},
            "projection": {"include": ["/offer_id", "/provider_did"]},
            "budget": {
                "amount": "100.00", "currency": "EUR", "allocation": "ranked_top_k", "top_k": 3,
                "distribution": [0.5, 0.3, 0.2]
            },
        });
        fs::write(self.path("question-draft.json"), draft.to_string())?;
        let (draft, answer, question) =
            (self.path("question-draft.json"), self.path("answer.json"), self.path("question.json"));
        let asked = ["ask", &draft, "--to", &self.resolver.url, "--save", &answer, "--save-intent", &question];
        succeeded(&self.run("principal", &[&asked[..], &["--no-receipt"]].concat())?, "ask")?;
        let question = read(&fs::read(self.path("question.json"))?)?;
        Ok(question.get("intent_id").and_then(Value::as_str).context("the question has no name")?.to_owned())
    }

    /// Kills a payment at a call and runs it again; whether there was such a call.
    fn play(&self, kind: &str, call: usize, faults: &mut Faults) -> Result<bool> {
        let intent_id = self.ask()?;
        let (answer, question, mandate) =
            (self.path("answer.json"), self.path("question.json"), self.path("mandate.json"));
        let (ledger, log) = (self.path(&format!("ledger-{kind}-{call}")), self.path("strace.log"));
        let pay = [
            "pay",
            &answer,
            "--intent",
            &question,
            "--mandate",
            &mandate,
            "--to",
            &self.wallet.url,
            "--ledger",
            &ledger,
        ];
        let (trace, inject) = (format!("trace={kind}"), format!("inject={kind}:signal=KILL:when={call}"));
        self.command("agent", Path::new("strace"))
            .args(["-f", "-qq", "-o", &log, "-e", &trace, "-e", &inject])
            .arg(&self.binary)
            .args(pay)
            .output()?;
        let killed = fs::read_to_string(&log)?.contains("killed by SIGKILL");
        let again = self.run("agent", &pay)?;
        if !again.status.success() {
            faults.tell(format!("{kind} {call}: {}", String::from_utf8_lossy(&again.stderr)));
        }
        let traced = self.run("agent", &["trace", &intent_id, "--ledger", &ledger, "--json"])?;
        let sound = traced.status.success() && settled_by(&read(&traced.stdout)?) == Some("100");
        if !sound {
            faults.tell(format!("{kind} {call}: the ledger says {}", String::from_utf8_lossy(&traced.stdout)));
        }
        let moved = self.moved(&intent_id)?;
        if moved.len() != 3 || moved.values().sum::<u64>() != BUDGET_CENTS {
            faults.tell(format!("{kind} {call}: the wallet moved {moved:?}"));
        }
        Ok(killed)
    }

    /// What the wallet moved for an intent, in cents, by session.
    fn moved(&self, intent_id: &str) -> Result<BTreeMap<String, u64>> {
        let mut moved = BTreeMap::new();
        for line in fs::read_to_string(&self.book)?.lines() {
            let entry = read(line.as_bytes())?;
            let Some(confirmation) = entry.get("confirmation") else { continue };
            let text = |name: &str| confirmation.get(name).and_then(Value::as_str).unwrap_or_default();
            if text("intent_id") == intent_id && text("status") == "settled" {
                let amount = confirmation.pointer("/settled_amount/value").and_then(Value::as_str);
                let cents = amount.map(|amount| amount.replace('.', "")).and_then(|cents| cents.parse().ok());
                moved.insert(text("session_id").to_owned(), cents.context("a settlement without an amount")?);
            }
        }
        Ok(moved)
    }
}

fn settled_by(traced: &Value) -> Option<&str> {
    traced.pointer("/intents/0/tree/settled").and_then(Value::as_str)
}

fn read(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).context("this is no JSON")
}

fn succeeded(output: &Output, what: &str) -> Result<()> {
    ensure!(output.status.success(), "`rialto {what}`: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn offer(name: &str) -> Value {
    json!({"record": {
        "offer_id": format!("urn:oap:offer:{name}"),
        "intent_id": "urn:oap:intent:any",
        "provider_did": format!("did:web:{name}.example"),
        "issued_at": "2026-01-01T08:00:00Z",
        "valid_until": "2099-12-31T23:00:00Z",
        "price": {"amount": "10.00", "currency": "EUR"},
        "goods_identification": {"service_code": "CRASH"},
        "delivery_commitment": {"committed_by": "2099-11-26T17:00:00Z"},
        "commitment_endpoint": format!("https://{name}.example/accept"),
        "signatures": [{"by": format!("did:web:{name}.example"), "alg": "EdDSA", "value": "AAAA"}],
    }})
}
