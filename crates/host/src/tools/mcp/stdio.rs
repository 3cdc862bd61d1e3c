//! MCP over standard input and output: one message for each line.
//!
//! INVARIANT: nothing of a half-read line is lost when nobody waits for it any more; a line that does not end is not
//! kept.

use super::guard::{Guard, MESSAGE_BYTES_MAX};
use super::{LinkError, Signals};
use crate::tools::group::Group;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;

/// A server that is a program here.
pub(super) struct Stdio {
    writer: Arc<Mutex<Option<ChildStdin>>>,
    reader: BufReader<ChildStdout>,
    line: Vec<u8>,
    guard: Guard,
    signals: Arc<Signals>,
    /// Dropped, the program ends.
    group: Option<Group>,
}

impl Stdio {
    pub(super) fn new(mut group: Group, signals: Arc<Signals>) -> Result<Self, LinkError> {
        let (Some(input), Some(output)) = (group.child.stdin.take(), group.child.stdout.take()) else {
            return Err(LinkError::Unsent("the server has no standard input and output"));
        };
        let writer = Arc::new(Mutex::new(Some(input)));
        let reader = BufReader::new(output);
        Ok(Self { writer, reader, line: Vec::new(), guard: Guard::default(), signals, group: Some(group) })
    }

    /// The next line; `None` when there is none or it is too long.
    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let bytes = self.reader.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            self.line.extend(bytes.iter().take(taken));
            self.reader.consume(taken);
            if self.line.len() > MESSAGE_BYTES_MAX {
                return None;
            }
            if end.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = LinkError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), LinkError>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move {
            let mut line = serde_json::to_vec(&item).map_err(|_| LinkError::Unsent("the message cannot be written"))?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(LinkError::Unsent("the server has ended"))?;
            // Whatever was written of it may have been read.
            let lost = |_| LinkError::Lost("the server ended while it was spoken to");
            writer.write_all(&line).await.map_err(lost)?;
            writer.flush().await.map_err(lost)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let heard = match self.line().await {
                Some(line) => self.guard.admit(&line),
                None => Err(super::guard::Flood),
            };
            match heard {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(_) => {
                    self.group = None;
                    self.signals.end();
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), LinkError> {
        *self.writer.lock().await = None;
        self.group = None;
        self.signals.end();
        Ok(())
    }
}
