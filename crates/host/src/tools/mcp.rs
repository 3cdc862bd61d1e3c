//! Tools of MCP servers, over standard input and output or over streamable HTTP.
//!
//! A server is asked for its tools when it is opened and whenever it says that they changed; a definition that is not
//! the approved one waits. One that dies is started again, after pauses that grow. Each credential has a session of its
//! own, so nobody's call is made in another's name. What a server wants of us (a model, a person, our folders) it does
//! not get.

mod guard;
mod stdio;
mod web;

use super::command;
use super::group::Program;
use crate::credentials::World;
use crate::definition::Definition;
use crate::fields::Fields;
use crate::http::Http;
use crate::name::{is_name, tool_name};
use crate::tool::{Call, Hand, Remarks, Tool, ToolError};
use crate::toolbox::Shelf;
use crate::{ConfigurationError, Pending, Secret};
use json::{Map, Value, json};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
    Implementation, PaginatedRequestParams, Tool as Offer,
};
use rmcp::service::{NotificationContext, RoleClient, RunningService, ServiceError, ServiceExt};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, timeout};

/// How long a server may take to begin.
pub(super) const BEGIN: Duration = Duration::from_secs(60);

/// Tools of one server.
const TOOLS_MAX: usize = 512;

/// Pages of one list.
const PAGES_MAX: usize = 64;

/// Sessions with one server, one for each credential.
const SESSIONS_MAX: usize = 64;

/// The pause after the first failure; each is twice as long as the last.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A server that lived that long did not fail at its beginning.
const STEADY: Duration = Duration::from_secs(10);

/// How often a list is read again at most.
const RELIST: Duration = Duration::from_secs(1);

/// The bounds of a server, by name.
pub(super) fn bounds() -> [(&'static str, u64); 5] {
    [
        ("mcp_tools", TOOLS_MAX as u64),
        ("mcp_pages", PAGES_MAX as u64),
        ("mcp_sessions", SESSIONS_MAX as u64),
        ("mcp_message_bytes", guard::MESSAGE_BYTES_MAX as u64),
        ("mcp_unasked_per_second", u64::from(guard::UNASKED_PER_SECOND_MAX)),
    ]
}

/// How a server is reached.
enum Link {
    Program(Program, Option<String>),
    Web(web::Address),
}

/// An entry of `tools` of the kind `mcp`.
pub(crate) struct Server {
    name: String,
    link: Link,
    /// The names of tools that are used; all when it is empty.
    only: Vec<String>,
    rename: BTreeMap<String, String>,
    idempotent: Vec<String>,
    /// The static identity that the list is asked for with.
    list_as: Option<String>,
    time: Duration,
    remarks: Remarks,
}

/// Why a message did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LinkError {
    /// Nothing was sent.
    #[error("{0}")]
    Unsent(&'static str),
    /// It may have been heard.
    #[error("{0}")]
    Lost(&'static str),
}

/// What a session tells those who watch it.
#[derive(Default)]
pub(super) struct Signals {
    changed: Notify,
    over: AtomicBool,
    end: Notify,
}

impl Signals {
    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.end.notify_waiters();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    async fn ended(&self) {
        let end = self.end.notified();
        tokio::pin!(end);
        // Registered before the look, so that an end in between is not missed.
        end.as_mut().enable();
        if !self.is_over() {
            end.await;
        }
    }
}

/// What we are to a server.
struct Client(Arc<Signals>);

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        // No capability is declared: no sampling, no elicitation, no roots.
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("rialto", env!("CARGO_PKG_VERSION")))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }
}

/// A session with a server.
struct Session {
    service: RunningService<RoleClient, Client>,
    signals: Arc<Signals>,
    begun: Instant,
}

/// The place of a session, also while there is none.
#[derive(Default)]
struct Slot {
    session: Option<Arc<Session>>,
    failures: u32,
    not_before: Option<Instant>,
}

/// A server with its sessions.
pub(crate) struct Connected {
    server: Arc<Server>,
    http: Arc<dyn Http>,
    slots: std::sync::Mutex<HashMap<[u8; 32], Arc<Mutex<Slot>>>>,
}

impl Server {
    pub(crate) fn read(
        name: &str,
        fields: &Fields<'_>,
        world: &World<'_>,
        time: Duration,
        remarks: &Remarks,
    ) -> Result<Self, ConfigurationError> {
        let link = match fields.text("url")? {
            Some(url) => {
                let known = url::Url::parse(url).is_ok_and(|url| ["http", "https"].contains(&url.scheme()));
                if !known {
                    return Err(fields.wrong("url", "this is no address like https://tools.example/mcp"));
                }
                let header = fields.text("credential_header")?.unwrap_or("authorization").to_owned();
                let words = if header == "authorization" { "Bearer " } else { "" };
                Link::Web(web::Address { url: url.to_owned(), credential: (header, words.to_owned()), time })
            }
            None => {
                let (program, credential) = command::program(fields, world)?;
                Link::Program(program, credential)
            }
        };
        let mut rename = BTreeMap::new();
        for (theirs, ours, at) in fields.entries("rename")? {
            match ours.as_str() {
                Some(ours) if is_name(ours) => rename.insert(theirs.to_owned(), ours.to_owned()),
                _ => return Err(ConfigurationError::new(&at, "this is no name of a tool")),
            };
        }
        let (only, idempotent) = (fields.texts("tools")?, fields.texts("idempotent")?);
        let list_as = fields.text("list_as")?.map(str::to_owned);
        let remarks = remarks.clone();
        Ok(Self { name: name.to_owned(), link, only, rename, idempotent, list_as, time, remarks })
    }

    /// The static identity that the list is asked for with.
    pub(crate) fn list_as(&self) -> Option<&str> {
        self.list_as.as_deref()
    }

    /// Our name for a tool of theirs.
    fn our_name(&self, theirs: &str) -> Option<String> {
        self.rename.get(theirs).cloned().or_else(|| tool_name(&self.name, theirs))
    }

    fn definition(&self, name: String, offer: &Offer) -> Definition {
        let object = |schema: &Arc<Map>| Value::Object(schema.as_ref().clone());
        Definition {
            name,
            description: offer.description.as_deref().unwrap_or_default().to_owned(),
            input: object(&offer.input_schema),
            output: offer.output_schema.as_ref().map(object),
            // What a server says of itself is a hint; only the operator is believed.
            idempotent: self.idempotent.iter().any(|known| *known == offer.name),
        }
    }
}

impl Connected {
    pub(crate) fn new(server: &Arc<Server>, http: &Arc<dyn Http>) -> Arc<Self> {
        Arc::new(Self { server: Arc::clone(server), http: Arc::clone(http), slots: std::sync::Mutex::default() })
    }

    /// Keeps the tools of the server on the shelf as they are; `ready` hears when they were read first.
    pub(crate) async fn watch(self: Arc<Self>, shelf: Arc<Shelf>, listing: Option<Secret>, ready: Arc<Notify>) {
        let mut pause = PAUSE;
        loop {
            match self.relist(&shelf, listing.as_ref()).await {
                Ok(session) => {
                    pause = PAUSE;
                    ready.notify_one();
                    tokio::select! {
                        () = session.signals.changed.notified() => {}
                        () = session.signals.ended() => {}
                    }
                    sleep(RELIST).await;
                }
                Err(error) => {
                    shelf.note(&self.server.name, error.to_string());
                    ready.notify_one();
                    sleep(pause).await;
                    pause = pause.saturating_mul(2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Reads the list and brings it to the shelf.
    async fn relist(self: &Arc<Self>, shelf: &Shelf, listing: Option<&Secret>) -> Result<Arc<Session>, ToolError> {
        let session = self.session(listing).await?;
        let offers = timeout(BEGIN, list(&session)).await.unwrap_or(Err(ToolError::Timeout))?;
        let mut named: BTreeMap<String, Vec<&Offer>> = BTreeMap::new();
        let mut problems = Vec::new();
        let wanted =
            |offer: &&Offer| self.server.only.is_empty() || self.server.only.iter().any(|name| *name == offer.name);
        for offer in offers.iter().filter(wanted) {
            match self.server.our_name(&offer.name) {
                Some(name) => named.entry(name).or_default().push(offer),
                None => {
                    problems.push("a tool has a name that cannot be written here; give it one with `rename`".to_owned())
                }
            }
        }
        let mut kept = Vec::new();
        for (name, offers) in named {
            let [offer] = offers.as_slice() else {
                problems.push(format!("two tools would be called `{name}`; give one another name with `rename`"));
                continue;
            };
            let hand = Reaching { connected: Arc::downgrade(self), name: offer.name.to_string() };
            let definition = self.server.definition(name.clone(), offer);
            let tool = Tool::new(definition, &self.server.name, Arc::new(hand));
            let tool = tool.within(self.server.time).remarked(&self.server.remarks);
            match shelf.put(tool) {
                Ok(()) => kept.push(name),
                Err(taken) => problems.push(taken.to_string()),
            }
        }
        shelf.keep(&self.server.name, &kept);
        shelf.note(&self.server.name, problems.join("; "));
        Ok(session)
    }

    /// The session for a credential, begun where there is none.
    async fn session(&self, credential: Option<&Secret>) -> Result<Arc<Session>, ToolError> {
        let slot = self.slot(credential)?;
        let mut slot = slot.lock().await;
        if let Some(session) = slot.session.take() {
            if !session.signals.is_over() && !session.service.is_closed() {
                slot.session = Some(Arc::clone(&session));
                return Ok(session);
            }
            match session.begun.elapsed() < STEADY {
                true => slot.failed(),
                false => slot.failures = 0,
            }
        }
        if slot.not_before.is_some_and(|moment| Instant::now() < moment) {
            return Err(ToolError::Unavailable("the server ended and is not started again yet".to_owned()));
        }
        match timeout(BEGIN, self.begin(credential)).await {
            Ok(Ok(session)) => {
                let session = Arc::new(session);
                slot.session = Some(Arc::clone(&session));
                Ok(session)
            }
            Ok(Err(error)) => {
                slot.failed();
                Err(error)
            }
            Err(_) => {
                slot.failed();
                Err(ToolError::Unavailable("the server did not begin in time".to_owned()))
            }
        }
    }

    fn slot(&self, credential: Option<&Secret>) -> Result<Arc<Mutex<Slot>>, ToolError> {
        let key = credential.map(|secret| Sha256::digest(secret.expose()).into()).unwrap_or_default();
        let mut slots = self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if slots.len() >= SESSIONS_MAX && !slots.contains_key(&key) {
            // Those in whose names nothing is under way make room.
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        if slots.len() >= SESSIONS_MAX && !slots.contains_key(&key) {
            return Err(ToolError::Unavailable("the server has too many sessions".to_owned()));
        }
        Ok(Arc::clone(slots.entry(key).or_default()))
    }

    async fn begin(&self, credential: Option<&Secret>) -> Result<Session, ToolError> {
        let signals = Arc::new(Signals::default());
        let client = Client(Arc::clone(&signals));
        let unavailable = |words: &str| ToolError::Unavailable(format!("the server: {words}"));
        let begun = match &self.server.link {
            Link::Program(program, variable) => {
                let given = variable.as_deref().zip(credential.map(Secret::expose));
                let group = program.start(given.as_slice()).map_err(|_| unavailable("it cannot be started"))?;
                let link = stdio::Stdio::new(group, Arc::clone(&signals));
                client.serve(link.map_err(|error| unavailable(&error.to_string()))?).await
            }
            Link::Web(address) => {
                client.serve(web::Web::new(&self.http, address, credential.cloned(), Arc::clone(&signals))).await
            }
        };
        // What the library says of a failed beginning may repeat what the server said.
        let service =
            begun.map_err(|_| unavailable("it does not begin as the protocol says; start it by hand to see why"))?;
        Ok(Session { service, signals, begun: Instant::now() })
    }
}

impl Slot {
    fn failed(&mut self) {
        let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + pause);
    }
}

async fn list(session: &Session) -> Result<Vec<Offer>, ToolError> {
    let mut offers = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let asked = PaginatedRequestParams::default().with_cursor(cursor);
        let page = session.service.list_tools(Some(asked)).await.map_err(said)?;
        offers.extend(page.tools);
        cursor = page.next_cursor;
        if offers.len() > TOOLS_MAX {
            return Err(ToolError::Protocol("the server has more tools than are taken".to_owned()));
        }
        if cursor.is_none() {
            return Ok(offers);
        }
    }
    Err(ToolError::Protocol("the list of tools does not end".to_owned()))
}

/// How far a request came that failed.
fn said(error: ServiceError) -> ToolError {
    match error {
        ServiceError::McpError(error) => ToolError::failed(&error.message),
        ServiceError::TransportSend(error) => match error.error.downcast_ref::<LinkError>() {
            Some(LinkError::Unsent(why)) => ToolError::Unavailable((*why).to_owned()),
            Some(LinkError::Lost(why)) => ToolError::Lost((*why).to_owned()),
            None => ToolError::Lost("the server could not be spoken to".to_owned()),
        },
        ServiceError::TransportClosed => ToolError::Lost("the server ended before it answered".to_owned()),
        ServiceError::Timeout { .. } => ToolError::Timeout,
        _ => ToolError::Protocol("the server answers something else than it was asked".to_owned()),
    }
}

/// What carries out the calls of one tool.
struct Reaching {
    connected: Weak<Connected>,
    name: String,
}

impl Hand for Reaching {
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let gone = || ToolError::Unavailable("the server is gone".to_owned());
            let session = self.connected.upgrade().ok_or_else(gone)?.session(call.credential).await?;
            let mut asked = CallToolRequestParams::new(self.name.clone());
            match call.inputs {
                Value::Object(members) => asked = asked.with_arguments(members.clone()),
                Value::Null => {}
                _ => return Err(ToolError::Inputs("the inputs are no object".to_owned())),
            }
            match session.service.peer().call_tool_once(asked).await.map_err(said)? {
                CallToolResponse::Complete(result) => outputs(result),
                CallToolResponse::InputRequired(_) => {
                    Err(ToolError::failed("the tool wants to ask a person, and nobody is there"))
                }
                // A task, or what a later version of the protocol adds.
                _ => Err(ToolError::Protocol("the tool answers with something else than a result".to_owned())),
            }
        })
    }
}

/// What a result says: its structure, else its one text where that is an object, else its texts.
fn outputs(result: CallToolResult) -> Result<Value, ToolError> {
    let texts: Vec<&str> =
        result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.as_str())).collect();
    if result.is_error == Some(true) {
        return Err(ToolError::failed(&texts.join("\n")));
    }
    if let Some(structure) = result.structured_content {
        return Ok(structure);
    }
    if let ([_], [text]) = (result.content.as_slice(), texts.as_slice())
        && let Ok(value @ Value::Object(_)) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let text = texts.join("\n");
    let others: Vec<&ContentBlock> = result.content.iter().filter(|block| block.as_text().is_none()).collect();
    if others.is_empty() {
        return Ok(json!({"text": text}));
    }
    match serde_json::to_value(others) {
        Ok(others) => Ok(json!({"text": text, "content": others})),
        Err(_) => Err(ToolError::Protocol("the server gives something that cannot be written".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: Value, expected: Result<Value, &str>) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        assert_eq!(outputs(result), expected.map_err(ToolError::failed));
    }

    #[test]
    fn a_result_is_its_structure_or_its_text() {
        let text = |text: &str| json!({"type": "text", "text": text});
        check(json!({"content": [text("x")], "structuredContent": {"a": 1}}), Ok(json!({"a": 1})));
        check(json!({"content": [text("{\"a\": 1}")]}), Ok(json!({"a": 1})));
        check(json!({"content": [text("[1]")]}), Ok(json!({"text": "[1]"})));
        check(json!({"content": [text("{\"a\": 1}"), text("b")]}), Ok(json!({"text": "{\"a\": 1}\nb"})));
        check(json!({"content": [], "isError": false}), Ok(json!({"text": ""})));
        check(json!({"content": [text("no"), text("way")], "isError": true}), Err("no\nway"));
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        check(json!({"content": [text("see"), image]}), Ok(json!({"text": "see", "content": [image]})));
    }
}
