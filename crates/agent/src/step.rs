//! OAS Engagement: what happens in an engagement, step by step.
//!
//! Steps are what a journal keeps. Each is written down before anything follows from it; a call is written down before it
//! is made and again when it came back. Calls are numbered through the whole engagement, from 0.
//!
//! INVARIANT: no step holds a credential.

use crate::Identity;
use json::{Map, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// The engagement was created.
    Begun(Begun),
    /// The user said something.
    UserSaid {
        /// What.
        text: String,
    },
    /// A guardrail's tool answered, or could not.
    GuardrailReturned {
        /// Which guardrail.
        place: Place,
        /// What came of it.
        outcome: Outcome,
    },
    /// A guardrail's assertion was true.
    GuardrailHeld {
        /// Which guardrail.
        place: Place,
    },
    /// The model took its turn.
    ModelSaid {
        /// Its words, where it has some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The calls that it proposes, in their order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ProposedCall>,
        /// What the turn cost.
        #[serde(default)]
        usage: Usage,
    },
    /// The capability of a proposed call is known, and the attempt is counted.
    Attempted {
        /// Its number.
        call: usize,
        /// The key of its capability.
        capability: String,
        /// What would be put in; `null` when the arguments are no object.
        inputs: Value,
    },
    /// A call is not made.
    Denied {
        /// Its number.
        call: usize,
        /// Why.
        why: Why,
    },
    /// Somebody was asked to agree.
    ReviewAsked {
        /// The call it is about.
        call: usize,
        /// To which end of it.
        stage: Stage,
        /// Who, until when, and over what.
        review: Review,
    },
    /// Somebody agreed or did not.
    ReviewDecided {
        /// The call it is about.
        call: usize,
        /// To which end of it.
        stage: Stage,
        /// The digest that was decided about.
        digest: String,
        /// What was decided.
        decision: Decision,
        /// Who decided; nobody when time did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why, for the audit trail only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The caller's credentials for a tool are not there.
    CredentialsMissing {
        /// The call that waits for them.
        call: usize,
    },
    /// They are there now.
    CredentialsArrived {
        /// The call that waited for them.
        call: usize,
    },
    /// A call is about to be made; written before it is.
    Dispatched {
        /// Its number.
        call: usize,
        /// Whose credentials go with it.
        identity: Identity,
    },
    /// A call came back; nobody has judged it yet.
    Returned {
        /// Its number.
        call: usize,
        /// What came of it.
        outcome: Outcome,
    },
    /// Nobody can tell whether a call was carried out.
    OutcomeUnknown {
        /// Its number.
        call: usize,
    },
    /// The result of a call may be used.
    Released {
        /// Its number.
        call: usize,
    },
    /// The result of a call may not be used.
    Withheld {
        /// Its number.
        call: usize,
        /// Why.
        why: Why,
    },
    /// The model wants to ask the user; nobody has judged the question yet.
    Asking {
        /// The call by which it asks.
        call: usize,
        /// The question.
        text: String,
    },
    /// The user was asked.
    Asked {
        /// The question.
        text: String,
        /// What is exposed beside it.
        exposes: Map,
        /// Exposed keys whose selection failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        expose_errors: Vec<String>,
    },
    /// The user was answered.
    Answered {
        /// The answer.
        text: String,
        /// What is exposed beside it.
        exposes: Map,
        /// Exposed keys whose selection failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        expose_errors: Vec<String>,
    },
    /// The engagement failed.
    Failed {
        /// Of what.
        failure: Failure,
        /// What more the audit trail should know; never shown to the caller.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Somebody ended the engagement.
    Cancelled {
        /// Who.
        by: String,
    },
}

impl Step {
    /// The step as a journal keeps it, with the milliseconds for which the engagement was worked on by then, where that is
    /// to be said.
    pub fn kept(&self, worked_ms: Option<u64>) -> Result<Vec<u8>, serde_json::Error> {
        match worked_ms {
            Some(worked_ms) => serde_json::to_vec(&Kept { step: self, worked_ms }),
            None => serde_json::to_vec(self),
        }
    }

    /// For how many milliseconds the engagement was worked on by a step, where the journal says it there.
    pub fn worked_ms(kept: &[u8]) -> Option<u64> {
        serde_json::from_slice::<Worked>(kept).ok()?.worked_ms
    }
}

#[derive(Serialize)]
struct Kept<'a> {
    #[serde(flatten)]
    step: &'a Step,
    worked_ms: u64,
}

#[derive(Deserialize)]
struct Worked {
    #[serde(default)]
    worked_ms: Option<u64>,
}

/// How an engagement begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// The engagement's own id.
    pub id: String,
    /// When it was created, as RFC 3339 writes it.
    pub started_at: String,
    /// The agent's name.
    pub agent: String,
    /// The digest of the document that it goes by until its end.
    pub document: String,
    /// Whose identity it has; nobody's when nobody proved one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<User>,
    /// Who is behind it, where an agent began it; for the audit trail only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// What the agent remembers of this user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Remembered>,
    /// What was left of the budget of the engagement that it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Allowance>,
    /// The versions of other servers' agents that it goes by: digests of their documents, by reference.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remotes: BTreeMap<String, String>,
}

/// What an engagement may use of the budget of another one; what is not said is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in millionths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_micros: Option<u64>,
    /// Time, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// Whose identity an engagement has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// What identifies the user to the server.
    pub id: String,
    /// The user's address, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// A turn of an earlier engagement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// What the user said.
    pub user: String,
    /// What was answered.
    pub answer: String,
}

/// A call as the model proposes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedCall {
    /// What the model calls this call.
    pub id: String,
    /// The function that it names.
    pub name: String,
    /// The arguments, as it wrote them.
    pub arguments: String,
}

/// What a turn of the model cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that it read.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens that it wrote.
    #[serde(default)]
    pub output_tokens: u64,
}

/// Which guardrail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before the model.
    Input,
    /// After it.
    Output,
}

/// Which end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before it is made.
    Input,
    /// Before its result is used.
    Output,
}

impl Stage {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// What came of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// This.
    Output(Value),
    /// It failed, and says this of it.
    Error(String),
}

impl Outcome {
    /// What the Engagement keeps of it.
    pub fn value(&self) -> Value {
        match self {
            Self::Output(value) => value.clone(),
            Self::Error(message) => json::json!({"error": message}),
        }
    }
}

/// Why a call is not made, or its result not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The agent has no such capability, or the server has it no more.
    Unknown,
    /// The arguments are none that the tool takes.
    Arguments,
    /// The assertion was not true.
    Assertion,
    /// Somebody did not agree, or nobody could.
    Review,
    /// Nobody's credentials may be used.
    Identity,
    /// It would act on words that came from a tool.
    Tainted,
}

impl Why {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Arguments => "arguments",
            Self::Assertion => "assertion",
            Self::Review => "review",
            Self::Identity => "identity",
            Self::Tainted => "tainted",
        }
    }
}

/// Somebody is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// The review's own id.
    pub id: String,
    /// Who is asked.
    pub reviewer: String,
    /// What is decided about: this engagement, this call, these values, this document.
    pub digest: String,
    /// Until when, as RFC 3339 writes it.
    pub expires_at: String,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may go on.
    Approved,
    /// It may not.
    Rejected,
    /// Nobody decided in time, so it may not.
    Expired,
}

impl Decision {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}

/// Of what an engagement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// A block of calls was repeated too often.
    ShortCircuit,
    /// A guardrail's assertion was not true.
    GuardrailFailed,
    /// A guardrail's tool gave no answer.
    GuardrailUnavailable,
    /// A bound was passed.
    Limit,
    /// The model gave no answer.
    Model,
    /// A call was not allowed, and the server ends an engagement for that.
    Denied,
    /// Something broke here.
    Internal,
}

impl Failure {
    /// The stable name that the caller is told.
    pub fn code(self) -> &'static str {
        match self {
            Self::ShortCircuit => "short_circuit",
            Self::GuardrailFailed => "guardrail_failed",
            Self::GuardrailUnavailable => "guardrail_unavailable",
            Self::Limit => "engagement_limit",
            Self::Model => "model_failed",
            Self::Denied => "call_denied",
            Self::Internal => "engagement_internal",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    #[test]
    fn steps_are_the_same_after_a_journey_through_json() {
        let steps = [
            Step::Begun(Begun {
                id: "e".to_owned(),
                started_at: "2026-01-01T00:00:00Z".to_owned(),
                agent: "a".to_owned(),
                document: "d".to_owned(),
                user: Some(User { id: "u".to_owned(), email: None }),
                allowance: Some(Allowance { tokens: Some(7), ..Allowance::default() }),
                remotes: BTreeMap::from([("oagent://h/a".to_owned(), "d".to_owned())]),
                ..Begun::default()
            }),
            Step::GuardrailReturned { place: Place::Input, outcome: Outcome::Error("down".to_owned()) },
            Step::Attempted { call: 0, capability: "crm".to_owned(), inputs: json!({"id": 7}) },
            Step::Dispatched { call: 0, identity: Identity::Static("desk".to_owned()) },
            Step::Returned { call: 0, outcome: Outcome::Output(json!([1, "x"])) },
            Step::Withheld { call: 0, why: Why::Assertion },
            Step::Failed { failure: Failure::Limit, detail: None },
        ];
        for step in steps {
            let text = serde_json::to_string(&step).unwrap();
            assert_eq!(serde_json::from_str::<Step>(&text).unwrap(), step, "{text}");
            assert_eq!(Step::worked_ms(text.as_bytes()), None);
            let kept = step.kept(Some(1_500)).unwrap();
            assert_eq!(serde_json::from_slice::<Step>(&kept).unwrap(), step, "{text}");
            assert_eq!(Step::worked_ms(&kept), Some(1_500));
        }
        let text = serde_json::to_value(Step::Denied { call: 3, why: Why::Arguments }).unwrap();
        assert_eq!(text, json!({"step": "denied", "call": 3, "why": "arguments"}));
    }
}
