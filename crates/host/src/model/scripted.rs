//! A model that replies from a file: the same to the same conversation, for tests and demonstrations.
//!
//! Rules come first: the first whose conditions hold replies. Where none does, the n-th turn of the script is the n-th
//! reply since the user last spoke. With `obey` it makes every call that the last message tells it to make, as the worst
//! of models would.
//!
//! INVARIANT: it remembers nothing; the conversation decides alone.

use super::budget::Price;
use super::{Arguments, Finish, Message, Model, ModelError, OnText, Reply, Request, ToolCall, Usage};
use crate::credentials::World;
use crate::fields::{Fields, parse};
use crate::tools::covers;
use crate::{ConfigurationError, Pending};
use json::{Pointer, Value};

/// Replies from a script.
#[derive(Clone, Debug)]
pub struct Scripted {
    rules: Vec<Rule>,
    turns: Vec<Line>,
    obey: Option<String>,
    price: Price,
}

#[derive(Clone, Debug)]
struct Rule {
    condition: Condition,
    line: Line,
}

/// What a rule sees.
#[derive(Clone, Debug)]
struct Condition {
    /// Stands in the last message, in any case of letters.
    contains: Option<String>,
    /// Stands anywhere in the conversation.
    anywhere: Option<String>,
    /// The last message is what this tool gave.
    result_of: Option<String>,
    /// The outputs have these members.
    outputs: Option<Value>,
    /// The last call failed or was denied.
    failed: Option<bool>,
    /// Replies since the user last spoke.
    turn: Option<u64>,
    /// This may be called.
    offered: Option<String>,
}

#[derive(Clone, Debug)]
struct Line {
    text: Option<String>,
    calls: Vec<(String, Arguments)>,
    usage: Usage,
}

impl Scripted {
    /// Reads a script, YAML or JSON.
    pub fn read(bytes: &[u8]) -> Result<Self, ConfigurationError> {
        let value = parse(bytes)?;
        Self::script(&value, &Pointer::root())
    }

    /// Reads an entry of `models`: a `file`, or the `script` itself.
    pub(crate) fn of(fields: &Fields<'_>, world: &World<'_>) -> Result<Self, ConfigurationError> {
        match (fields.text("file")?, fields.value("script")) {
            (Some(path), None) => match std::fs::read(world.folder.join(path)) {
                Ok(bytes) => Self::read(&bytes),
                Err(_) => Err(fields.wrong("file", "the script cannot be read")),
            },
            (None, Some(script)) => Self::script(script, &fields.at("script")),
            _ => Err(fields.wrong("script", "a scripted model has a `file` or a `script`")),
        }
    }

    fn script(value: &Value, at: &Pointer) -> Result<Self, ConfigurationError> {
        let fields = Fields::of(value, at)?;
        let mut rules = Vec::new();
        for (position, value) in fields.list("rules")?.iter().enumerate() {
            let rule = Fields::of(value, &fields.at("rules").child(position))?;
            let when = rule.object("when")?.ok_or_else(|| rule.wrong("when", "`when` is missing"))?;
            let condition = Condition::read(when)?;
            rules.push(Rule { condition, line: Line::read(&rule)? });
            rule.finish()?;
        }
        let mut turns = Vec::new();
        for (position, value) in fields.list("turns")?.iter().enumerate() {
            let turn = Fields::of(value, &fields.at("turns").child(position))?;
            turns.push(Line::read(&turn)?);
            turn.finish()?;
        }
        let obey = fields.text("obey")?.map(str::to_owned);
        let price = Price::read(fields.object("price")?)?;
        fields.finish()?;
        Ok(Self { rules, turns, obey, price })
    }

    fn reply(&self, request: &Request) -> Result<Reply, ModelError> {
        let seen = Seen::of(request, !self.rules.is_empty());
        let told = self.obey.as_ref().map(|marker| orders(&seen.last, marker)).unwrap_or_default();
        if !told.is_empty() {
            return Ok(Line { text: None, calls: told, usage: Usage::default() }.spoken(&seen));
        }
        let rule = self.rules.iter().find(|rule| rule.condition.holds(&seen, request)).map(|rule| &rule.line);
        match rule.or_else(|| self.turns.get(seen.turn)) {
            Some(line) => Ok(line.spoken(&seen)),
            None => Err(ModelError::Protocol("the script has no reply to this conversation".to_owned())),
        }
    }
}

/// What a script sees of a conversation.
struct Seen<'a> {
    last: String,
    result: Option<(&'a str, &'a Value, bool)>,
    /// Everything that was said, where a rule may ask for it.
    all: String,
    /// Replies since the user last spoke.
    turn: usize,
    /// Calls so far, so that every one has an id of its own.
    calls: usize,
}

impl<'a> Seen<'a> {
    fn of(request: &'a Request, with_all: bool) -> Self {
        let said = |message: &Message| match message {
            Message::User { text } => text.clone(),
            Message::Assistant { text, .. } => text.clone().unwrap_or_default(),
            Message::Result { outputs, .. } => words(outputs),
        };
        let all: Vec<String> = request.messages.iter().filter(|_| with_all).map(said).collect();
        let is_reply = |message: &&Message| matches!(message, Message::Assistant { .. });
        let since = request.messages.iter().rev().take_while(|message| !matches!(message, Message::User { .. }));
        let result = match request.messages.last() {
            Some(Message::Result { name, outputs, failed, .. }) => Some((name.as_str(), outputs, *failed)),
            _ => None,
        };
        let calls = request.messages.iter().map(|message| match message {
            Message::Assistant { calls, .. } => calls.len(),
            Message::User { .. } | Message::Result { .. } => 0,
        });
        Self {
            last: request.messages.last().map(said).unwrap_or_default(),
            result,
            all: all.join("\n").to_lowercase(),
            turn: since.filter(is_reply).count(),
            calls: calls.sum(),
        }
    }
}

/// All texts in a value, so that a script sees words and no escapes.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(words).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => members.values().map(words).collect::<Vec<_>>().join("\n"),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain.to_string(),
    }
}

/// The calls that a text orders: after the marker a name, then the inputs as JSON.
fn orders(text: &str, marker: &str) -> Vec<(String, Arguments)> {
    let ordered = text.split(marker).skip(1).filter_map(|order| {
        let order = order.trim_start();
        let (name, rest) = order.split_once(char::is_whitespace)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        Some((name.to_owned(), Arguments::Json(values.next()?.ok()?)))
    });
    ordered.collect()
}

impl Condition {
    fn read(fields: Fields<'_>) -> Result<Self, ConfigurationError> {
        let condition = Self {
            contains: fields.text("contains")?.map(str::to_lowercase),
            anywhere: fields.text("anywhere")?.map(str::to_lowercase),
            result_of: fields.text("result_of")?.map(str::to_owned),
            outputs: fields.value("outputs").cloned(),
            failed: fields.value("failed").map(|_| fields.flag("failed", true)).transpose()?,
            turn: fields.count("turn")?,
            offered: fields.text("offered")?.map(str::to_owned),
        };
        fields.finish()?;
        Ok(condition)
    }

    fn holds(&self, seen: &Seen<'_>, request: &Request) -> bool {
        let said = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| text.contains(wanted));
        let of_result = |holds: &dyn Fn(&(&str, &Value, bool)) -> bool| seen.result.as_ref().is_some_and(holds);
        said(&self.contains, &seen.last.to_lowercase())
            && said(&self.anywhere, &seen.all)
            && self.result_of.as_ref().is_none_or(|name| of_result(&|(of, ..)| of == name))
            && self.outputs.as_ref().is_none_or(|wanted| of_result(&|(_, outputs, _)| covers(outputs, wanted)))
            && self.failed.is_none_or(|wanted| of_result(&|(.., failed)| *failed == wanted))
            && self.turn.is_none_or(|turn| turn == seen.turn as u64)
            && self.offered.as_ref().is_none_or(|name| request.tools.iter().any(|tool| tool.name == *name))
    }
}

impl Line {
    fn read(fields: &Fields<'_>) -> Result<Self, ConfigurationError> {
        let mut calls = Vec::new();
        for (position, value) in fields.list("calls")?.iter().enumerate() {
            let call = Fields::of(value, &fields.at("calls").child(position))?;
            let arguments = match (call.value("inputs"), call.text("broken")?) {
                (inputs, None) => Arguments::Json(inputs.cloned().unwrap_or_else(|| json::json!({}))),
                (None, Some(text)) => Arguments::Broken(text.to_owned()),
                (Some(_), Some(_)) => return Err(call.wrong("broken", "a call has `inputs` or is `broken`")),
            };
            calls.push((call.needed_text("tool")?.to_owned(), arguments));
            call.finish()?;
        }
        let usage = match fields.object("usage")? {
            Some(usage) => {
                let read = Usage {
                    input_tokens: usage.count("input_tokens")?.unwrap_or_default(),
                    output_tokens: usage.count("output_tokens")?.unwrap_or_default(),
                };
                usage.finish()?;
                read
            }
            None => Usage::default(),
        };
        let text = fields.text("text")?.map(str::to_owned);
        if text.is_none() && calls.is_empty() {
            return Err(fields.wrong("text", "a reply has a `text` or `calls`"));
        }
        Ok(Self { text, calls, usage })
    }

    fn spoken(&self, seen: &Seen<'_>) -> Reply {
        let call = |(position, (name, arguments)): (usize, &(String, Arguments))| ToolCall {
            id: format!("call-{}", seen.calls + position + 1),
            name: name.clone(),
            arguments: arguments.clone(),
        };
        let calls: Vec<ToolCall> = self.calls.iter().enumerate().map(call).collect();
        let finish = if calls.is_empty() { Finish::Stop } else { Finish::Calls };
        // What the outputs said may be repeated: `{result}` stands for it.
        let text = self.text.as_ref().map(|text| text.replace("{result}", &seen.last));
        Reply { text, calls, finish, usage: self.usage }
    }
}

impl Model for Scripted {
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        on_text: Option<OnText<'a>>,
    ) -> Pending<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let reply = self.reply(request)?;
            if let (Some(on_text), Some(text)) = (on_text, &reply.text) {
                on_text(text);
            }
            Ok(reply)
        })
    }

    fn provider(&self) -> &str {
        "scripted"
    }

    fn name(&self) -> &str {
        "scripted"
    }

    fn price(&self) -> Price {
        self.price
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    const SCRIPT: &str = "
rules:
  - when: {contains: weather}
    text: It rains.
  - when: {result_of: crm, outputs: {name: Ada}}
    text: 'Her name is {result}'
  - when: {failed: true}
    text: I may not.
  - when: {offered: secret-tool, turn: 3}
    text: There is a secret.
turns:
  - calls: [{tool: crm, inputs: {id: 42}}, {tool: crm, broken: '{\"id\": '}]
    usage: {input_tokens: 7, output_tokens: 3}
  - text: Second.
";

    fn result(name: &str, outputs: Value, failed: bool) -> Message {
        Message::Result { id: "call-1".to_owned(), name: name.to_owned(), outputs, failed }
    }

    #[track_caller]
    fn check(messages: &[Message], expected: Option<&str>) {
        let script = Scripted::read(SCRIPT.as_bytes()).unwrap();
        let request = Request { messages: messages.to_vec(), ..Request::default() };
        let reply = script.reply(&request);
        assert_eq!(reply.as_ref().ok().and_then(|reply| reply.text.as_deref()), expected, "{reply:?}");
        assert_eq!(script.reply(&request), reply, "the same again");
    }

    #[test]
    fn the_conversation_decides_what_is_replied() {
        let user = |text: &str| Message::User { text: text.to_owned() };
        let spoken = Message::Assistant { text: None, calls: Vec::new() };
        check(&[user("How is the Weather?")], Some("It rains."));
        check(&[user("hello"), spoken.clone(), result("crm", json!({"name": "Ada"}), false)], Some("Her name is Ada"));
        check(&[user("hello"), spoken.clone(), result("crm", json!({"name": "Bob"}), false)], Some("Second."));
        check(&[user("hello"), spoken.clone(), result("crm", json!({}), true)], Some("I may not."));
        check(&[user("hello"), spoken.clone(), spoken.clone(), result("crm", json!({}), false)], None);
        check(&[user("hello"), spoken.clone(), spoken, user("the weather")], Some("It rains."));
    }

    #[test]
    fn calls_have_ids_of_their_own_and_may_be_broken() {
        let script = Scripted::read(SCRIPT.as_bytes()).unwrap();
        let mut request = Request::default();
        request.messages.push(Message::User { text: "hello".to_owned() });
        let reply = script.reply(&request).unwrap();
        assert_eq!(reply.calls[0].id, "call-1");
        assert_eq!(reply.calls[1].arguments, Arguments::Broken("{\"id\": ".to_owned()));
        assert_eq!((reply.finish, reply.usage.input_tokens), (Finish::Calls, 7));
        request.messages.push(Message::Assistant { text: None, calls: reply.calls });
        request.messages.push(Message::User { text: "again".to_owned() });
        assert_eq!(script.reply(&request).unwrap().calls[0].id, "call-3");
    }

    #[test]
    fn an_obedient_model_does_what_it_reads() {
        let script = Scripted::read(b"{\"obey\": \"CALL \", \"turns\": [{\"text\": \"done\"}]}").unwrap();
        let text = "Nice. CALL mail.send {\"to\": \"x\"} and CALL pay {\"n\": 1} CALL nothing".to_owned();
        let request = Request { messages: vec![Message::User { text }], ..Request::default() };
        let names: Vec<String> = script.reply(&request).unwrap().calls.into_iter().map(|call| call.name).collect();
        assert_eq!(names, ["mail.send", "pay"]);
    }

    #[test]
    fn a_script_with_a_flaw_is_refused_with_its_place() {
        for (script, at) in [
            ("turns: [{}]", "/turns/0/text"),
            ("turns: [{text: a, txt: b}]", "/turns/0/txt"),
            ("rules: [{text: a}]", "/rules/0/when"),
            ("rules: [{when: {turns: 1}, text: a}]", "/rules/0/when/turns"),
            ("turns: [{calls: [{tool: a, inputs: {}, broken: b}]}]", "/turns/0/calls/0/broken"),
        ] {
            let error = Scripted::read(script.as_bytes()).unwrap_err();
            assert_eq!(error.at.as_str(), at, "{error}");
        }
    }
}
