//! What is heard from a server before anybody acts on it: bounded messages, and not too many that nobody asked for.

use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of one message: the most a tool may give, escaped, with what is around it.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Messages of a second that nobody asked for.
pub(super) const UNASKED_PER_SECOND_MAX: u32 = 100;

/// Messages of a connection that nobody understands.
const RUBBISH_MAX: u32 = 100;

/// The server sends more than is borne.
pub(super) struct Flood;

/// Counts what nobody asked for.
#[derive(Default)]
pub(super) struct Guard {
    since: Option<Instant>,
    unasked: u32,
    rubbish: u32,
}

impl Guard {
    /// Reads a message; `None` for what is passed over.
    pub(super) fn admit(&mut self, bytes: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleClient>>, Flood> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let Ok(message) = serde_json::from_slice::<RxJsonRpcMessage<RoleClient>>(bytes) else {
            self.rubbish += 1;
            return if self.rubbish > RUBBISH_MAX { Err(Flood) } else { Ok(None) };
        };
        let answered =
            matches!(message, RxJsonRpcMessage::<RoleClient>::Response(_) | RxJsonRpcMessage::<RoleClient>::Error(_));
        if !answered {
            let now = Instant::now();
            if self.since.is_none_or(|since| now.duration_since(since) > Duration::from_secs(1)) {
                (self.since, self.unasked) = (Some(now), 0);
            }
            self.unasked += 1;
            if self.unasked > UNASKED_PER_SECOND_MAX {
                return Err(Flood);
            }
        }
        Ok(Some(message))
    }
}
