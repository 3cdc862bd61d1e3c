//! Why an agent was not called, or what was wrong with its answer.

use crate::outbound::{DidError, FetchError};
use crate::refusal::Error;
use json::{Pointer, Value};

/// Why a call brought nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// Neither an address nor a domain nor a DID.
    #[error("`{0}` is neither the address of a description nor a domain nor a DID")]
    Agent(String),
    /// The agent's DID leads nowhere.
    #[error("the agent's DID proves nothing: {0}")]
    Did(#[from] DidError),
    /// Somebody could not be asked.
    #[error("`{url}` cannot be asked: {error}")]
    Unreached {
        /// Who.
        url: String,
        /// Why.
        error: FetchError,
    },
    /// A document is not there.
    #[error("`{url}` answers {status}, and a document was expected")]
    Absent {
        /// Where.
        url: String,
        /// The status of HTTP.
        status: u16,
    },
    /// A domain or a DID that names no description.
    #[error("`{0}` lists no description of an agent")]
    Undescribed(String),
    /// A domain that lists several agents.
    #[error("`{domain}` lists {} agents", .agents.len())]
    Ambiguous {
        /// The domain.
        domain: String,
        /// Their addresses.
        agents: Vec<String>,
    },
    /// No description that can be relied on.
    #[error("the description at `{url}` is not accepted: {reason}")]
    Description {
        /// Where.
        url: String,
        /// The first reason.
        reason: String,
    },
    /// The DID that was named does not stand behind the description.
    #[error("the DID that was named does not stand behind the description at `{0}`")]
    Unbound(String),
    /// No definition of an interface can be had.
    #[error("no interface of the agent can be read: {0}")]
    Definition(String),
    /// No interface has this method.
    #[error("the agent has no method `{method}`")]
    Method {
        /// What was wanted.
        method: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The method does not take this.
    #[error("`{method}` takes no `{name}`")]
    Unknown {
        /// Which method.
        method: String,
        /// Which argument.
        name: String,
        /// What it takes.
        known: Vec<String>,
    },
    /// The method needs more.
    #[error("`{method}` needs `{name}`")]
    Missing {
        /// Which method.
        method: String,
        /// Which argument.
        name: String,
    },
    /// An argument that the method does not take in this form.
    #[error("`{name}` is not what the method takes: {reason}")]
    Argument {
        /// Which argument.
        name: String,
        /// Where in it.
        at: Pointer,
        /// Why.
        reason: String,
    },
    /// Access that nobody gets, or by means that we do not have.
    #[error("the description lets nobody in as we could come: {0}")]
    Security(String),
    /// Access is for those with a did:wba, and we have none.
    #[error("the agent demands a did:wba of whoever calls it")]
    Identity,
    /// A person must agree first.
    #[error("the description wants a person to agree before this is called")]
    Agreement,
    /// Nothing says where calls go.
    #[error("nothing in the interface says where calls go")]
    Server,
    /// The agent lets us not in.
    #[error("the agent does not let us in ({status}){}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The word of its challenge.
        reason: Option<String>,
    },
    /// The agent says no.
    #[error("the agent answers with an error{}", .code.map(|code| format!(" ({code})")).unwrap_or_default())]
    Answered {
        /// The code of JSON-RPC, or the status of HTTP.
        code: Option<i64>,
        /// What it says, as it came.
        said: Box<Value>,
    },
    /// An answer that is none.
    #[error("the answer cannot be used: {0}")]
    Reply(String),
    /// Something broke here.
    #[error("{0}")]
    Fault(String),
}

impl CallError {
    /// The stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent_reference_invalid",
            Self::Did(error) => error.code(),
            Self::Unreached { .. } => "agent_unreachable",
            Self::Absent { .. } => "agent_document_absent",
            Self::Undescribed(_) => "agent_undescribed",
            Self::Ambiguous { .. } => "agent_ambiguous",
            Self::Description { .. } => "agent_description_refused",
            Self::Unbound(_) => "agent_description_unbound",
            Self::Definition(_) => "interface_unreadable",
            Self::Method { .. } => "method_unknown",
            Self::Unknown { .. } => "argument_unknown",
            Self::Missing { .. } => "argument_missing",
            Self::Argument { .. } => "argument_invalid",
            Self::Security(_) => "security_refused",
            Self::Identity => "identity_required",
            Self::Agreement => "agreement_required",
            Self::Server => "server_unknown",
            Self::Refused { .. } => "authentication_refused",
            Self::Answered { .. } => "call_answered_with_error",
            Self::Reply(_) => "reply_invalid",
            Self::Fault(_) => "internal_error",
        }
    }

    /// What may help.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Agent(_) => "write it like https://agent.example/ad.json, agent.example or did:wba:agent.example",
            Self::Did(_) => "`rialto did resolve` says more about a DID",
            Self::Unreached { .. } => "check the address; only the public internet is asked, except in test networks",
            Self::Absent { .. } => "check the address",
            Self::Undescribed(_) => "name the address of its description",
            Self::Ambiguous { .. } => "name one of them",
            Self::Description { .. } => "`rialto describe URL` says what is wrong with it; tell its owner",
            Self::Unbound(_) => "somebody may have copied it; name the description's address to call it all the same",
            Self::Definition(_) => "`rialto describe URL` says what is wrong with it; tell its owner",
            Self::Method { .. } => "call the agent without a method to see what there is",
            Self::Unknown { .. } => "leave it out, or write it as the method does",
            Self::Missing { .. } => "give it as NAME=VALUE",
            Self::Argument { .. } => "give what the method's schema takes; NAME:=JSON writes a value as JSON",
            Self::Security(_) => "ask the agent's owner how to get in",
            Self::Identity => "make a name with `rialto did new`, publish it, and give it with --did",
            Self::Agreement => "read what it does, and say that you agree with --agree",
            Self::Server => "tell the agent's owner: `servers` must name an address",
            Self::Refused { .. } => "check that your DID's document is published with the key that signs",
            Self::Answered { .. } => "it is the agent's own word; check the arguments",
            Self::Reply(_) => "tell the agent's owner",
            Self::Fault(_) => "try again",
        }
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Fault(error.to_string())
    }
}
