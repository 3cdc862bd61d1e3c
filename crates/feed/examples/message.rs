//! RFC 0020 §3.6: one message as it is brought to a webhook, for a library of others to verify (`cargo xtask webhooks`).

use feed::webhook::{Message, Secret};
use json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use trust::SigningKey;

const SECRETS: [&str; 2] = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];

#[expect(clippy::disallowed_methods, reason = "whoever verifies looks at the clock")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timestamp = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    let body = json!({"cursor": 7, "payload": {"name": "Ponte di Rialto – 1591"}}).to_string();
    let message = Message { id: "evt_x_7", timestamp, url: "https://example.com/hook", body: body.as_bytes() };
    let secrets: Vec<Secret> = SECRETS.iter().filter_map(|secret| Secret::read(secret)).collect();
    let headers = message.headers(&SigningKey::from_seed([7; 32]), "did:web:node.example#node-key", &secrets);
    let headers: Value = headers.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    println!("{}", json!({"secrets": SECRETS, "headers": headers, "body": body}));
    Ok(())
}
