//! A tool whose answers stand in the configuration: for guardrails by list, for demonstrations and for tests.

use crate::fields::Fields;
use crate::tool::{Call, Hand, ToolError};
use crate::{ConfigurationError, Pending};
use json::Value;

/// Answers from a list of cases.
pub(crate) struct Fixed {
    cases: Vec<Case>,
    otherwise: Option<Value>,
}

struct Case {
    /// Members that the inputs must have.
    inputs: Option<Value>,
    /// A text that must stand somewhere in the inputs, in any case of letters.
    contains: Option<String>,
    says: Result<Value, String>,
}

impl Fixed {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, ConfigurationError> {
        let mut cases = Vec::new();
        for (position, value) in fields.list("cases")?.iter().enumerate() {
            let case = Fields::of(value, &fields.at("cases").child(position))?;
            let says = match (case.value("returns"), case.text("fails")?) {
                (Some(value), None) => Ok(value.clone()),
                (None, Some(words)) => Err(words.to_owned()),
                _ => return Err(case.wrong("returns", "a case has `returns` or `fails`")),
            };
            let contains = case.text("contains")?.map(str::to_lowercase);
            cases.push(Case { inputs: case.value("inputs").cloned(), contains, says });
            case.finish()?;
        }
        let otherwise = fields.value("returns").cloned();
        if cases.is_empty() && otherwise.is_none() {
            return Err(fields.wrong("returns", "`returns` is missing"));
        }
        Ok(Self { cases, otherwise })
    }

    fn answer(&self, inputs: &Value) -> Result<Value, ToolError> {
        match self.cases.iter().find(|case| case.fits(inputs)).map(|case| &case.says) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(words)) => Err(ToolError::failed(words)),
            None => self.otherwise.clone().ok_or_else(|| ToolError::failed("nothing is known about these inputs")),
        }
    }
}

impl Case {
    fn fits(&self, inputs: &Value) -> bool {
        self.inputs.as_ref().is_none_or(|wanted| covers(inputs, wanted))
            && self.contains.as_ref().is_none_or(|text| mentions(inputs, text))
    }
}

/// Whether a value has everything that is wanted, members beside it allowed.
pub(crate) fn covers(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(members), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| members.get(name).is_some_and(|value| covers(value, wanted)))
        }
        _ => value == wanted,
    }
}

fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(said) => said.to_lowercase().contains(text),
        Value::Array(list) => list.iter().any(|value| mentions(value, text)),
        Value::Object(members) => members.values().any(|value| mentions(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

impl Hand for Fixed {
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(async { self.answer(call.inputs) })
    }
}
