//! The Model Context Protocol, without any input and output: lines come in, and steps go out.
//!
//! Versions up to 2025-11-25 begin with a handshake; 2026-07-28 has none, and names itself in each request.
//= docs/mcp.md#protocol

use super::lines::{Line, MAX_BYTES};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use trace_format::shown::Shown;

/// Versions with a handshake; the last one is offered to a client that asks for another.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version without.
const STATELESS: &str = "2026-07-28";
/// The only version with batches.
const BATCHES: &str = "2025-03-26";
/// Where a request names its version.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const UNSUPPORTED_VERSION: i32 = -32022;
/// Too many calls are waiting.
const BUSY: i32 = -32000;

/// Calls that may be waiting or running.
pub const MAX_CALLS: usize = 16;
/// Messages of a batch.
const MAX_BATCH: usize = 50;
/// Bytes of a request's id, as JSON without quotes around it.
pub const MAX_ID_BYTES: usize = 100;
/// For how long a client may keep the list of tools.
const LIST_TTL_MS: u64 = 3_600_000;

/// What a line leads to.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// A line for the client, without its end.
    Send(String),
    /// A tool is called; its result goes to [`Protocol::finish`].
    Call(Call),
    /// The client has cancelled the call with this number, whose result is dropped.
    Cancel(u64),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its number, which no other call has.
    pub number: u64,
    /// The tool, one of those that are offered.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// A call without a result so far.
#[derive(Debug)]
struct Pending {
    id: Value,
    is_stateless: bool,
    batch: Option<u64>,
}

/// Responses that go out together.
#[derive(Debug, Default)]
struct Batch {
    responses: Vec<Value>,
    missing: usize,
}

/// The state of a connection.
#[derive(Debug)]
pub struct Protocol {
    tools: Value,
    instructions: &'static str,
    version: Option<&'static str>,
    next: u64,
    pending: BTreeMap<u64, Pending>,
    batches: BTreeMap<u64, Batch>,
}

/// An error of the protocol.
struct Refusal {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl Refusal {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// Text of the client's, as far as it is repeated in an error.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    format!("\"{}\"", Shown(&short))
}

fn error(id: Value, refusal: Refusal) -> Value {
    let mut error = json!({"code": refusal.code, "message": refusal.message});
    if let Some(data) = refusal.data {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// A request's id, if it may be one.
fn id_of(message: &Map<String, Value>) -> Option<Value> {
    let id = message.get("id")?;
    let is_valid = match id {
        Value::String(_) => id.to_string().len() <= MAX_ID_BYTES + 2,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    };
    is_valid.then(|| id.clone())
}

impl Protocol {
    /// A new connection to a server with these tools.
    pub fn new(tools: Value, instructions: &'static str) -> Self {
        Self {
            tools,
            instructions,
            version: None,
            next: 0,
            pending: BTreeMap::new(),
            batches: BTreeMap::new(),
        }
    }

    /// Takes a line of the client's.
    pub fn line(&mut self, line: &Line) -> Vec<Step> {
        let Line::Whole(bytes) = line else {
            return vec![self.refuse(INVALID_REQUEST, format!("a line has more than {MAX_BYTES} bytes"))];
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(message)) => self.message(message, None),
            Ok(Value::Array(messages)) if self.version == Some(BATCHES) => self.batch(messages),
            Ok(Value::Array(_)) => {
                let why = format!("only version {BATCHES} of the protocol has batches");
                vec![self.refuse(INVALID_REQUEST, why)]
            }
            Ok(_) => vec![self.refuse(INVALID_REQUEST, "expected an object")],
            Err(why) => vec![self.refuse(PARSE_ERROR, format!("no JSON: {why}"))],
        }
    }

    /// The response to a call: the text of a tool, or why it failed. None while others of its batch are
    /// missing, or if it was cancelled.
    pub fn finish(&mut self, number: u64, result: Result<String, Refused>) -> Option<String> {
        let Pending { id, is_stateless, batch } = self.pending.remove(&number)?;
        let is_error = result.is_err();
        let text = result.unwrap_or_else(|Refused(why)| why);
        let mut result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
        if is_stateless {
            result["resultType"] = "complete".into();
        }
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let Some(number) = batch else { return Some(response.to_string()) };
        let batch = self.batches.get_mut(&number)?;
        batch.responses.push(response);
        batch.missing -= 1;
        self.complete(number)
    }

    /// The responses of a batch, once all are there.
    fn complete(&mut self, number: u64) -> Option<String> {
        if self.batches.get(&number)?.missing > 0 {
            return None;
        }
        let batch = self.batches.remove(&number)?;
        (!batch.responses.is_empty()).then(|| Value::from(batch.responses).to_string())
    }

    fn refuse(&self, code: i32, message: impl Into<String>) -> Step {
        Step::Send(error(Value::Null, Refusal::new(code, message)).to_string())
    }

    fn batch(&mut self, messages: Vec<Value>) -> Vec<Step> {
        if messages.is_empty() || messages.len() > MAX_BATCH {
            return vec![
                self.refuse(INVALID_REQUEST, format!("expected 1 to {MAX_BATCH} messages in a batch")),
            ];
        }
        self.next += 1;
        let number = self.next;
        self.batches.insert(number, Batch::default());
        let mut steps = Vec::new();
        for message in messages {
            let Value::Object(message) = message else {
                let refusal = Refusal::new(INVALID_REQUEST, "expected an object");
                self.respond(error(Value::Null, refusal), Some(number), &mut steps);
                continue;
            };
            steps.extend(self.message(message, Some(number)));
        }
        steps.extend(self.complete(number).map(Step::Send));
        steps
    }

    fn respond(&mut self, response: Value, batch: Option<u64>, steps: &mut Vec<Step>) {
        match batch.and_then(|number| self.batches.get_mut(&number)) {
            Some(batch) => batch.responses.push(response),
            None => steps.push(Step::Send(response.to_string())),
        }
    }

    fn message(&mut self, mut message: Map<String, Value>, batch: Option<u64>) -> Vec<Step> {
        let mut steps = Vec::new();
        let id = id_of(&message);
        let has_id = message.contains_key("id");
        let is_response = message.contains_key("result") || message.contains_key("error");
        let method = match (message.get("method"), message.get("jsonrpc")) {
            (Some(Value::String(method)), Some(Value::String(version))) if version == "2.0" => method.clone(),
            // The server asks nothing, so there is nothing to be answered.
            (None, _) if is_response => return steps,
            _ => {
                let refusal = Refusal::new(INVALID_REQUEST, "expected \"jsonrpc\": \"2.0\" and a method");
                self.respond(error(id.unwrap_or_default(), refusal), batch, &mut steps);
                return steps;
            }
        };
        let params = message.remove("params");
        let Some(id) = id else {
            if has_id {
                let why = format!("expected an id: a whole number or text of at most {MAX_ID_BYTES} bytes");
                self.respond(error(Value::Null, Refusal::new(INVALID_REQUEST, why)), batch, &mut steps);
            } else {
                self.notification(&method, params, &mut steps);
            }
            return steps;
        };
        match self.request(&id, &method, params, batch) {
            Ok(Answer::Result(result)) => {
                let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
                self.respond(response, batch, &mut steps);
            }
            Ok(Answer::Call(call)) => steps.push(Step::Call(call)),
            Err(refusal) => self.respond(error(id, refusal), batch, &mut steps),
        }
        steps
    }

    fn notification(&mut self, method: &str, params: Option<Value>, steps: &mut Vec<Step>) {
        let Some(id) = params.as_ref().and_then(|params| params.get("requestId")) else { return };
        let number = self.pending.iter().find(|(_, pending)| pending.id == *id).map(|(number, _)| *number);
        let Some(number) = number.filter(|_| method == "notifications/cancelled") else { return };
        let batch = self.pending.remove(&number).and_then(|pending| pending.batch);
        steps.push(Step::Cancel(number));
        if let Some(batch) = batch {
            if let Some(batch) = self.batches.get_mut(&batch) {
                batch.missing -= 1;
            }
            steps.extend(self.complete(batch).map(Step::Send));
        }
    }

    fn request(
        &mut self,
        id: &Value,
        method: &str,
        params: Option<Value>,
        batch: Option<u64>,
    ) -> Result<Answer, Refusal> {
        let params = match params {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(Refusal::new(INVALID_PARAMS, "expected an object as params")),
        };
        let is_stateless = is_stateless(&params)?;
        if !is_stateless && self.version.is_none() && !["initialize", "ping"].contains(&method) {
            // A client of a version without a handshake asks for this first, and begins with one after that.
            if method == "server/discover" {
                return Err(no_method(method));
            }
            return Err(Refusal::new(INVALID_REQUEST, "expected initialize first"));
        }
        let result = match (method, is_stateless) {
            ("initialize", false) => self.initialize(&params, batch)?,
            ("ping", false) => json!({}),
            ("server/discover", true) => json!({
                "supportedVersions": [STATELESS, VERSIONS[3], VERSIONS[2], VERSIONS[1], VERSIONS[0]],
                "capabilities": {"tools": {}},
                "instructions": self.instructions,
                "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
                "ttlMs": LIST_TTL_MS,
                "cacheScope": "private",
            }),
            ("tools/list", _) => {
                if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
                    return Err(Refusal::new(
                        INVALID_PARAMS,
                        "the list of tools has one page; leave cursor out",
                    ));
                }
                let mut result = json!({"tools": self.tools});
                if is_stateless {
                    result["ttlMs"] = LIST_TTL_MS.into();
                    result["cacheScope"] = "private".into();
                }
                result
            }
            ("tools/call", _) => return self.call(id, params, batch, is_stateless).map(Answer::Call),
            _ => return Err(no_method(method)),
        };
        let mut result = result;
        if is_stateless {
            result["resultType"] = "complete".into();
        }
        Ok(Answer::Result(result))
    }

    fn initialize(&mut self, params: &Map<String, Value>, batch: Option<u64>) -> Result<Value, Refusal> {
        if self.version.is_some() || batch.is_some() {
            return Err(Refusal::new(INVALID_REQUEST, "initialize comes first, alone and once"));
        }
        let Some(Value::String(asked)) = params.get("protocolVersion") else {
            return Err(Refusal::new(INVALID_PARAMS, "expected a protocolVersion"));
        };
        let known = VERSIONS.iter().find(|version| *version == asked);
        let version = *known.unwrap_or(&VERSIONS[VERSIONS.len() - 1]);
        self.version = Some(version);
        Ok(json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": server_info(),
            "instructions": self.instructions,
        }))
    }

    fn call(
        &mut self,
        id: &Value,
        mut params: Map<String, Value>,
        batch: Option<u64>,
        is_stateless: bool,
    ) -> Result<Call, Refusal> {
        let Some(Value::String(tool)) = params.remove("name") else {
            return Err(Refusal::new(INVALID_PARAMS, "expected the name of a tool"));
        };
        let has_tool =
            |tools: &Value| tools.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == tool));
        if !has_tool(&self.tools) {
            return Err(Refusal::new(INVALID_PARAMS, format!("no such tool: {}", quoted(&tool))));
        }
        let arguments = match params.remove("arguments") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(Refusal::new(INVALID_PARAMS, "expected an object as arguments")),
        };
        if self.pending.values().any(|pending| pending.id == *id) {
            return Err(Refusal::new(INVALID_REQUEST, "another request with this id is not answered yet"));
        }
        if self.pending.len() >= MAX_CALLS {
            return Err(Refusal::new(
                BUSY,
                format!("{MAX_CALLS} calls are waiting already; try again later"),
            ));
        }
        self.next += 1;
        let number = self.next;
        self.pending.insert(number, Pending { id: id.clone(), is_stateless, batch });
        if let Some(batch) = batch.and_then(|number| self.batches.get_mut(&number)) {
            batch.missing += 1;
        }
        Ok(Call { number, tool, arguments })
    }
}

/// Why a call has no result, as the client is to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// The answer to a request.
enum Answer {
    Result(Value),
    Call(Call),
}

fn no_method(method: &str) -> Refusal {
    Refusal::new(METHOD_NOT_FOUND, format!("no such method: {}", quoted(method)))
}

/// Whether a request is of the version without a handshake.
fn is_stateless(params: &Map<String, Value>) -> Result<bool, Refusal> {
    match params.get("_meta").and_then(|meta| meta.get(VERSION_KEY)) {
        None => Ok(false),
        Some(Value::String(version)) if version == STATELESS => Ok(true),
        Some(Value::String(version)) => {
            let mut refusal =
                Refusal::new(UNSUPPORTED_VERSION, format!("version {} is not supported", quoted(version)));
            let requested: String = version.chars().take(80).collect();
            refusal.data = Some(json!({"supported": [STATELESS], "requested": requested}));
            Err(refusal)
        }
        Some(_) => Err(Refusal::new(INVALID_PARAMS, format!("expected text as {VERSION_KEY}"))),
    }
}

fn server_info() -> Value {
    json!({"name": "trace", "title": "Traces of programs", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests;
