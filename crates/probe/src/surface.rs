//! What the core protocol asks of every tool at levels L0 and L1: that the addresses in its manifest answer.
//!
//! Only the shape of the surface is looked at here; what is said at the doors of RFC 0020 is the corpus' business.

use crate::live::Live;
use crate::target::{OAP_JSON, Said};
use crate::wire::Request;
use anyhow::{Context, Result, ensure};
use json::{Value, json};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// What is wrong with the surface of a node, by level.
#[derive(Clone, Debug, Default)]
pub struct Surface {
    /// What L0 asks for and was not found.
    pub l0: Vec<String>,
    /// What L1 asks for on top and was not found.
    pub l1: Vec<String>,
}

impl Surface {
    /// The levels of the core protocol that are met.
    pub fn levels(&self) -> Vec<&'static str> {
        match (self.l0.is_empty(), self.l1.is_empty()) {
            (true, true) => vec!["L0", "L1"],
            (true, false) => vec!["L0"],
            (false, _) => Vec::new(),
        }
    }

    /// The findings for programs.
    pub fn to_value(&self) -> Value {
        json!({"levels": self.levels(), "l0": self.l0, "l1": self.l1})
    }
}

type Look = (&'static str, fn(&Live) -> Result<()>);

const L0: [Look; 5] = [
    ("the manifest", manifest),
    ("endpoints.invoke", |live| refuses(live, "invoke")),
    ("endpoints.data_delete", |live| refuses(live, "data_delete")),
    ("endpoints.audit", audit),
    ("endpoints.incident", incident),
];

const L1: [Look; 4] = [
    ("actions", actions),
    ("endpoints.discover", discover),
    ("endpoints.receipt_verify", receipt_verify),
    ("accountability.recovery", receipt_chain),
];

/// Looks at everything once.
pub(crate) fn look(live: &Live) -> Surface {
    let flaws = |looks: &[Look]| {
        let flaw = |(what, look): &Look| look(live).err().map(|error| format!("{what}: {error:#}"));
        looks.iter().filter_map(flaw).collect()
    };
    Surface { l0: flaws(&L0), l1: flaws(&L1) }
}

fn manifest(live: &Live) -> Result<()> {
    let manifest = &live.target.manifest;
    ensure!(manifest.get("oap_version") == Some(&json!("1.0")), "`oap_version` is not 1.0");
    for member in ["auth", "sla", "trust", "data_policy", "risk_class", "jurisdictions", "governance"] {
        ensure!(manifest.get(member).is_some(), "it has no `{member}`");
    }
    Ok(())
}

/// An empty message is refused, which shows that somebody is there.
fn refuses(live: &Live, name: &str) -> Result<()> {
    let said = live.target.post(&door(live, name)?, b"{}")?;
    ensure!((400..500).contains(&said.status) && said.status != 404, "an empty message gets {}", said.brief());
    Ok(())
}

fn audit(live: &Live) -> Result<()> {
    let principal = utf8_percent_encode(&live.parties.did(), NON_ALPHANUMERIC).to_string();
    let said = get(live, &format!("{}?principal_did={principal}", door(live, "audit")?))?;
    ensure!(said.value.get("receipts").is_some_and(Value::is_array), "no list of receipts: {}", said.brief());
    Ok(())
}

fn incident(live: &Live) -> Result<()> {
    get(live, &door(live, "incident")?).map(drop)
}

fn actions(live: &Live) -> Result<()> {
    let actions = live.target.manifest.get("actions").and_then(Value::as_array).context("there are none")?;
    ensure!(!actions.is_empty(), "there are none");
    for member in ["id", "side_effects", "input_schema", "output_schema"] {
        ensure!(actions.iter().all(|action| action.get(member).is_some()), "one has no `{member}`");
    }
    Ok(())
}

fn discover(live: &Live) -> Result<()> {
    let body = json!({"intent": "find a service", "principal_did": live.parties.did()});
    let said = live.target.post(&door(live, "discover")?, body.to_string().as_bytes())?;
    let listed = said.value.get("matching_actions").is_some_and(Value::is_array);
    ensure!(said.status == 200 && listed, "no list of actions: {}", said.brief());
    Ok(())
}

/// A receipt that nobody issued must not be found valid.
fn receipt_verify(live: &Live) -> Result<()> {
    let did = live.target.did();
    let forged = json!({
        "receipt_id": format!("urn:oap:receipt:{}", live.parties.fresh()), "type": "invocation",
        "timestamp": live.parties.time(0), "principal_did": live.parties.did(), "agent_did": live.parties.did(),
        "tool_did": did, "previous_receipt_hash": "genesis",
        "signatures": [{"by": did, "alg": "EdDSA", "value": "A".repeat(86)}],
    });
    let said = live.target.post(&door(live, "receipt_verify")?, forged.to_string().as_bytes())?;
    ensure!((400..500).contains(&said.status) && said.status != 404, "a forged receipt gets {}", said.brief());
    Ok(())
}

fn receipt_chain(live: &Live) -> Result<()> {
    let told = live.target.manifest.pointer("/accountability/recovery/export_endpoint").and_then(Value::as_str);
    get(live, &live.target.here(told.context("no `export_endpoint` is named")?)).map(drop)
}

fn door(live: &Live, name: &str) -> Result<String> {
    let told = live.target.manifest.get("endpoints").and_then(|doors| doors.get(name)).and_then(Value::as_str);
    Ok(live.target.here(told.context("the manifest does not name it")?))
}

fn get(live: &Live, url: &str) -> Result<Said> {
    let said = live.target.send(&Request { method: "GET", url, media_type: OAP_JSON, body: &[] })?;
    ensure!(said.status == 200, "{}", said.brief());
    Ok(said)
}
