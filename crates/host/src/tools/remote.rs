//! Tools behind HTTP: an address that the operator names, a credential in a header, JSON there and back.
//!
//! INVARIANT: no input of a model reaches the host of an address; it becomes an encoded part of the path, a query, a
//! header that the operator named, or the body.

use crate::fields::Fields;
use crate::http::{Http, HttpError, Request, Response};
use crate::tool::{Call, Hand, OUTPUT_BYTES_MAX, ToolError};
use crate::{ConfigurationError, Pending};
use description::{Definition as Interface, Operation, Parameter, Place};
use json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use url::Url;

/// Header fields that are never an input, whatever a document says.
const NEVER_INPUTS: [&str; 14] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "host",
    "accept",
    "content-type",
    "content-length",
    "idempotency-key",
    "connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// How one kind of request is put together.
enum Form {
    /// JSON-RPC 2.0: the inputs are the parameters of one method.
    Rpc { url: Url, method: String },
    /// The inputs are the body, or the query of a GET.
    Json { url: Url, method: String },
    /// The inputs also name the path below one of these hosts.
    Chosen { hosts: Vec<String> },
    /// An operation of an OpenAPI document.
    Operation { base: Url, method: String, path: String, params: Vec<Parameter> },
}

/// The header fields that are the operator's.
#[derive(Clone)]
struct Own {
    /// The one of the credential, and the words before it.
    credential: (String, String),
    fixed: Vec<(String, String)>,
}

impl Own {
    fn read(fields: &Fields<'_>) -> Result<Self, ConfigurationError> {
        let header = fields.text("credential_header")?.unwrap_or("authorization").to_owned();
        let words = if header == "authorization" { "Bearer " } else { "" };
        let mut fixed = Vec::new();
        for (name, value, at) in fields.entries("headers")? {
            match value.as_str() {
                Some(value) if is_header(name) => fixed.push((name.to_ascii_lowercase(), value.to_owned())),
                _ => return Err(ConfigurationError::new(&at, "this is no header field")),
            }
        }
        Ok(Self { credential: (header, words.to_owned()), fixed })
    }

    /// Whether a model may fill this field: it is neither the operator's nor one that HTTP lives by.
    fn leaves(&self, name: &str) -> bool {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let fixed = self.fixed.iter().any(|(known, _)| is(known));
        is_header(name) && !fixed && !is(&self.credential.0) && !NEVER_INPUTS.iter().any(|known| is(known))
    }
}

/// What the operator says of a tool behind HTTP, before there is a client.
pub(crate) struct Remote {
    form: Arc<Form>,
    own: Own,
}

/// The same with a client.
pub(crate) struct Reached {
    form: Arc<Form>,
    own: Own,
    http: Arc<dyn Http>,
}

impl Remote {
    fn with(form: Form, fields: &Fields<'_>) -> Result<Self, ConfigurationError> {
        Ok(Self { form: Arc::new(form), own: Own::read(fields)? })
    }

    /// An entry of the kind `json-rpc`.
    pub(crate) fn rpc(fields: &Fields<'_>) -> Result<Self, ConfigurationError> {
        let form = Form::Rpc { url: address(fields, "url")?, method: fields.needed_text("method")?.to_owned() };
        Self::with(form, fields)
    }

    /// An entry of the kind `http-json`: one `url`, or `hosts` below which a model chooses.
    pub(crate) fn json(fields: &Fields<'_>) -> Result<Self, ConfigurationError> {
        let hosts = fields.texts("hosts")?;
        let method = fields.text("method")?.unwrap_or("POST").to_owned();
        if !["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str()) {
            return Err(fields.wrong("method", "this method is not used"));
        }
        let form = match (fields.text("url")?.is_some(), hosts.is_empty()) {
            (true, true) => Form::Json { url: address(fields, "url")?, method },
            (false, false) => Form::Chosen { hosts },
            _ => return Err(fields.wrong("url", "there is one `url`, or a list of `hosts`")),
        };
        Self::with(form, fields)
    }

    /// The inputs of a tool that chooses its address.
    pub(crate) fn chosen_inputs(&self) -> Option<Value> {
        let Form::Chosen { .. } = *self.form else { return None };
        Some(json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The address, with https."},
                "method": {"enum": ["GET", "POST", "PUT", "PATCH", "DELETE"]},
                "body": {"description": "What is sent, as JSON."},
            },
            "required": ["url"],
            "additionalProperties": false,
        }))
    }

    pub(crate) fn reached(&self, http: &Arc<dyn Http>) -> Reached {
        Reached { form: Arc::clone(&self.form), own: self.own.clone(), http: Arc::clone(http) }
    }
}

/// The operations of an OpenAPI document that an entry names, each with what it takes and gives.
pub(crate) fn operations(fields: &Fields<'_>, folder: &Path) -> Result<Vec<(Operation, Remote)>, ConfigurationError> {
    let bytes = std::fs::read(folder.join(fields.needed_text("document")?));
    let bytes = bytes.map_err(|_| fields.wrong("document", "the document cannot be read"))?;
    let document = Interface::parse(&bytes).map_err(|refusal| fields.wrong("document", refusal.to_string()))?;
    let wanted = fields.texts("operations")?;
    let missing = wanted.iter().find(|name| !document.operations.iter().any(|known| known.name == **name));
    if missing.is_some() {
        return Err(fields.wrong("operations", "the document has no operation of one of these names"));
    }
    let base = match (fields.text("url")?, document.servers.first()) {
        (Some(_), _) => address(fields, "url")?,
        (None, Some(server)) => web(server).ok_or_else(|| fields.wrong("document", "its server is no address"))?,
        (None, None) => return Err(fields.wrong("url", "the document names no server; name it here")),
    };
    let hosts = fields.texts("hosts")?;
    let host = base.host_str().unwrap_or_default();
    if !hosts.is_empty() && !hosts.iter().any(|known| known == host) {
        return Err(fields.wrong("hosts", "the server of the document is not among these hosts"));
    }
    let (mut found, own) = (Vec::new(), Own::read(fields)?);
    for mut operation in document.operations {
        let description::Call::Http { method, path } = operation.call.clone() else { continue };
        if wanted.is_empty() || wanted.contains(&operation.name) {
            // A document that declares the field of the credential does not hand it to a model.
            operation.params.retain(|param| param.place != Place::Header || own.leaves(&param.name));
            let form = Form::Operation { base: base.clone(), method, path, params: operation.params.clone() };
            found.push((operation, Remote { form: Arc::new(form), own: own.clone() }));
        }
    }
    match found.is_empty() {
        true => Err(fields.wrong("document", "the document has no operations over HTTP")),
        false => Ok(found),
    }
}

/// One object for everything that an operation takes; cookies are not for models.
pub(crate) fn inputs(operation: &Operation) -> Value {
    let taken = || operation.params.iter().filter(|param| param.place != Place::Cookie);
    let property = |param: &Parameter| {
        let mut schema = param.schema.clone();
        if let (Some(members), Some(words)) = (schema.as_object_mut(), &param.description) {
            members.entry("description").or_insert_with(|| json!(words));
        }
        (param.name.clone(), schema)
    };
    let properties: Map = taken().map(property).collect();
    let required: Vec<&str> = taken().filter(|param| param.required).map(|param| param.name.as_str()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn address(fields: &Fields<'_>, name: &'static str) -> Result<Url, ConfigurationError> {
    web(fields.needed_text(name)?).ok_or_else(|| fields.wrong(name, "this is no address like https://tools.example/x"))
}

fn web(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    (bare && url.has_host() && ["http", "https"].contains(&url.scheme())).then_some(url)
}

fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A value as part of a path, a query or a header.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What is sent for these inputs.
struct Outgoing {
    method: String,
    url: Url,
    headers: Vec<(String, String)>,
    body: Option<Value>,
}

impl Form {
    fn outgoing(&self, call: &Call<'_>) -> Result<Outgoing, ToolError> {
        let bare = |method: &str, url: &Url, body| Outgoing {
            method: method.to_owned(),
            url: url.clone(),
            headers: Vec::new(),
            body,
        };
        match self {
            Self::Rpc { url, method } => {
                let body = json!({"jsonrpc": "2.0", "id": call.id, "method": method, "params": call.inputs});
                Ok(bare("POST", url, Some(body)))
            }
            Self::Json { url, method } if method == "GET" || method == "DELETE" => {
                let mut outgoing = bare(method, url, None);
                for (name, value) in call.inputs.as_object().into_iter().flatten() {
                    outgoing.url.query_pairs_mut().append_pair(name, &plain(value));
                }
                Ok(outgoing)
            }
            Self::Json { url, method } => Ok(bare(method, url, Some(call.inputs.clone()))),
            Self::Chosen { hosts } => chosen(hosts, call.inputs),
            Self::Operation { base, method, path, params } => operation(base, method, path, params, call.inputs),
        }
    }

    /// What an answer of success says.
    fn read(&self, value: Value) -> Result<Value, ToolError> {
        let Self::Rpc { .. } = self else { return Ok(value) };
        match (value.get("result"), value.get("error")) {
            (_, Some(error)) if !error.is_null() => {
                Err(ToolError::failed(error.get("message").and_then(Value::as_str).unwrap_or("the method failed")))
            }
            (Some(result), _) => Ok(result.clone()),
            _ => Err(ToolError::Protocol("the answer is no JSON-RPC".to_owned())),
        }
    }
}

/// A request to an address that a model chose, on a host that the operator did.
fn chosen(hosts: &[String], inputs: &Value) -> Result<Outgoing, ToolError> {
    let forbidden = || ToolError::Inputs("this address is not on a host that may be asked".to_owned());
    let url = inputs.get("url").and_then(Value::as_str).and_then(web).ok_or_else(forbidden)?;
    let authority = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    if !hosts.contains(&authority) {
        return Err(forbidden());
    }
    let method = inputs.get("method").and_then(Value::as_str).unwrap_or("GET").to_owned();
    Ok(Outgoing { method, url, headers: Vec::new(), body: inputs.get("body").cloned() })
}

fn operation(
    base: &Url,
    method: &str,
    path: &str,
    params: &[Parameter],
    inputs: &Value,
) -> Result<Outgoing, ToolError> {
    let mut outgoing = Outgoing { method: method.to_owned(), url: base.clone(), headers: Vec::new(), body: None };
    let given = |name: &str, place: Place| {
        let known = params.iter().any(|param| param.name == name && param.place == place);
        known.then(|| inputs.get(name)).flatten()
    };
    {
        let no_path = |()| ToolError::Unavailable("the server of the document has no paths".to_owned());
        let mut segments = outgoing.url.path_segments_mut().map_err(no_path)?;
        segments.pop_if_empty();
        for segment in path.split('/').skip(1) {
            let filled = fill(segment, |name| given(name, Place::Path).map(plain))?;
            // A dot alone would lead up, also when it is encoded.
            if filled == "." || filled == ".." {
                return Err(ToolError::Inputs("an input does not fit into the path".to_owned()));
            }
            segments.push(&filled);
        }
    }
    for param in params {
        let Some(value) = inputs.get(&param.name) else { continue };
        match param.place {
            Place::Query => {
                let mut pairs = outgoing.url.query_pairs_mut();
                let several = value.as_array().map(Vec::as_slice).unwrap_or(std::slice::from_ref(value));
                pairs.extend_pairs(several.iter().map(|value| (param.name.as_str(), plain(value))));
            }
            Place::Header => {
                let text = plain(value);
                if !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
                    return Err(ToolError::Inputs("an input does not fit into a header".to_owned()));
                }
                outgoing.headers.push((param.name.to_ascii_lowercase(), text));
            }
            Place::Body => outgoing.body = Some(value.clone()),
            Place::Path | Place::Cookie | Place::Named => {}
        }
    }
    Ok(outgoing)
}

/// A segment of a path with the inputs in place of their names.
fn fill(segment: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, ToolError> {
    let (mut filled, mut rest) = (String::new(), segment);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        filled.push_str(before);
        filled.push_str(&value(name).ok_or_else(|| ToolError::Inputs("an input for the path is missing".to_owned()))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

impl Reached {
    async fn ask(&self, call: Call<'_>) -> Result<Value, ToolError> {
        let outgoing = self.form.outgoing(&call)?;
        let mut headers = self.own.fixed.clone();
        headers.extend(outgoing.headers);
        headers.push(("accept".to_owned(), "application/json".to_owned()));
        headers.push(("idempotency-key".to_owned(), call.id.to_owned()));
        if outgoing.body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if let Some(secret) = call.credential {
            let (name, words) = &self.own.credential;
            headers.push((name.clone(), format!("{words}{}", secret.expose())));
        }
        let request = Request {
            method: outgoing.method,
            url: outgoing.url.into(),
            headers,
            body: outgoing.body.map(|body| body.to_string().into_bytes()),
            time: call.time,
            bytes_max: OUTPUT_BYTES_MAX,
        };
        let response = self.http.send(request).await.map_err(failed)?;
        self.read(response).await
    }

    async fn read(&self, response: Response) -> Result<Value, ToolError> {
        let (status, success) = (response.status, response.is_success());
        let bytes = response.whole().await.map_err(failed)?;
        if (500..600).contains(&status) && status != 501 {
            // Who breaks may have broken after the effect.
            return Err(ToolError::Lost(format!("the tool broke with status {status}")));
        }
        if !success {
            return Err(ToolError::failed(&format!("status {status}: {}", String::from_utf8_lossy(&bytes))));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return self.form.read(json!({}));
        }
        let value = serde_json::from_slice(&bytes);
        self.form.read(value.map_err(|_| ToolError::Protocol("the answer is no JSON".to_owned()))?)
    }
}

pub(super) fn failed(error: HttpError) -> ToolError {
    match error {
        HttpError::Refused(_) | HttpError::Unreachable => ToolError::Unavailable(error.to_string()),
        HttpError::Lost => ToolError::Lost(error.to_string()),
        HttpError::Timeout => ToolError::Timeout,
        HttpError::TooLarge | HttpError::Unusable(_) => ToolError::Protocol(error.to_string()),
    }
}

impl Hand for Reached {
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(self.ask(call))
    }
}
