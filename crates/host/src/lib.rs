//! OAS Agent: what a hosted agent is given, its tools and its model.
//!
//! | What | Room |
//! |---|---|
//! | the operator's file | `configuration`, `fields` |
//! | names, and what a model calls them | `name` |
//! | what a tool is and how it is called | `definition`, `tool`, `toolbox` |
//! | in whose name | `credentials`, `secret` |
//! | the kinds of tools | `tools` |
//! | generative models | `model` |
//! | agents as tools for others | `serve` |
//! | every bound of these, by name | `limits` |
//! | how anything leaves this machine | `http`, `sse` |
//!
//! INVARIANT: nothing here opens a connection; HTTP goes through the [`Http`] that is handed in. A secret is in no
//! input, no output, no error and no `Debug`. The clock is tokio's, and only to end what takes too long.

mod limits;
mod fields;
mod configuration;
mod name;
mod secret;
mod credentials;
mod http;
mod sse;
mod definition;
mod tool;
mod toolbox;
mod tools;
mod model;
mod serve;

pub use configuration::{AgentSetting, Configuration, ConfigurationError, EngagementSetting};
pub use credentials::{Identity, Vault, identity};
pub use definition::{DESCRIPTION_BYTES_MAX, Definition, Rejected, SCHEMA_BYTES_MAX};
pub use http::{Body, Http, HttpError, Request as HttpRequest, Response as HttpResponse};
pub use limits::limits;
pub use model::budget::{Budget, DayBudget, DayBudgets, Exceeded, Price, Spent};
pub use model::scripted::Scripted;
pub use model::{
    Arguments, Finish, Function, Message, Model, ModelError, OnText, Options, Reply, Request, ToolCall, Usage,
};
pub use name::{Aliases, is_name, tool_name};
pub use secret::Secret;
pub use serve::{Agents, Offered, Served, serve_mcp};
pub use tool::{
    Call, Hand, OUTPUT_BYTES_MAX, REMOTE_TIME_MAX, Remarks, State, TIME_DEFAULT, TIME_MAX, Tool, ToolError,
};
pub use toolbox::{Means, Pins, Toolbox};
pub use tools::{RemoteAgent, Skill, Visits, remote_agent, remote_agent_of, remote_agent_since};

use std::future::Future;
use std::pin::Pin;

/// What comes later.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
