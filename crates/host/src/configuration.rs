//! What the operator gives to hosted agents: tools, credentials, models and budgets, in one file.
//!
//! It is the operator's alone: a document about an agent names tools and identities and never says what they are.
//!
//! INVARIANT: what nobody knows is refused with its place; a credential stands in the environment or in a file of its
//! own, never here.

use crate::credentials::{Vault, World};
use crate::fields::{Fields, parse};
use crate::model::Setting;
use crate::model::budget::{Budget, DayBudgets};
use crate::tool::{REMOTE_TIME_MAX, TIME_DEFAULT};
use crate::tools::Entry;
use json::Pointer;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Tools that one configuration may name.
pub(crate) const ENTRIES_MAX: usize = 1_000;

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at `{at}`")]
pub struct ConfigurationError {
    /// The place.
    pub at: Pointer,
    /// What is wrong, and what would be right.
    pub detail: String,
}

impl ConfigurationError {
    pub(crate) fn new(at: &Pointer, detail: impl Into<String>) -> Self {
        Self { at: at.clone(), detail: detail.into() }
    }

    /// The stable name.
    pub fn code(&self) -> &'static str {
        "host_configuration_invalid"
    }
}

/// What an operator gives.
pub struct Configuration {
    pub(crate) tools: Vec<Entry>,
    pub(crate) vault: Vault,
    pub(crate) models: BTreeMap<String, Setting>,
    default_model: Option<String>,
    agents: BTreeMap<String, AgentSetting>,
    budget: Budget,
    days: DayBudgets,
    engagements: EngagementSetting,
    remote_time: Duration,
    content: bool,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Configuration({} tools, {} models)", self.tools.len(), self.models.len())
    }
}

/// What one agent is given beside its document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSetting {
    /// The name of its model.
    pub model: Option<String>,
    /// What one engagement may cost.
    pub budget: Budget,
    /// Turns of earlier engagements with the same user that it is reminded of, where its document lets it remember.
    pub memory: usize,
}

/// What an operator allows engagements beyond the text, or less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngagementSetting {
    /// Whether a model gets a function to ask the user back.
    pub ask_user: bool,
    /// Whether strangers may act with an agent's static identities.
    pub lends_to_strangers: bool,
    /// Whether an engagement ends when a call is not allowed.
    pub denial_ends: bool,
}

impl EngagementSetting {
    fn read(fields: Option<Fields<'_>>) -> Result<Self, ConfigurationError> {
        let Some(fields) = fields else { return Ok(Self::default()) };
        let setting = Self {
            ask_user: fields.flag("ask_user", false)?,
            lends_to_strangers: fields.flag("lends_to_strangers", false)?,
            denial_ends: fields.flag("denial_ends", false)?,
        };
        fields.finish()?;
        Ok(setting)
    }
}

/// Turns that an agent can be reminded of.
pub(crate) const MEMORY_MAX: u64 = 100;

impl Configuration {
    /// Reads YAML or JSON; relative paths begin in `folder`, and the environment is asked for credentials.
    pub fn read(
        bytes: &[u8],
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigurationError> {
        let (value, world) = (parse(bytes)?, World { environment, folder });
        let fields = Fields::of(&value, &Pointer::root())?;
        let vault = match fields.object("credentials")? {
            Some(given) => {
                let vault = Vault::read(&given, &world)?;
                given.finish()?;
                vault
            }
            None => Vault::default(),
        };
        let entries = fields.entries("tools")?;
        if entries.len() > ENTRIES_MAX {
            return Err(fields.wrong("tools", format!("{ENTRIES_MAX} entries are possible")));
        }
        let tools = entries
            .into_iter()
            .map(|(name, value, at)| Entry::read(name, value, &at, &world))
            .collect::<Result<_, _>>()?;
        let mut models = BTreeMap::new();
        for (name, value, at) in fields.entries("models")? {
            models.insert(name.to_owned(), Setting::read(value, &at, &world)?);
        }
        let known = |name: Option<&str>, fields: &Fields<'_>| match name {
            Some(name) if !models.contains_key(name) => Err(fields.wrong("model", "no model has this name")),
            name => Ok(name.map(str::to_owned)),
        };
        let default_model = known(fields.text("model")?, &fields)?;
        let budget = Budget::read(fields.object("budget")?)?;
        let days = DayBudgets::read(fields.object("budgets_per_day")?)?;
        let mut agents = BTreeMap::new();
        for (name, value, at) in fields.entries("agents")? {
            let agent = Fields::of(value, &at)?;
            let model = known(agent.text("model")?, &agent)?;
            let budget = Budget::read(agent.object("budget")?)?;
            let memory = agent.count("memory")?.unwrap_or_default();
            if memory > MEMORY_MAX {
                return Err(agent.wrong("memory", format!("0 to {MEMORY_MAX} turns are possible")));
            }
            agent.finish()?;
            let memory = usize::try_from(memory).unwrap_or_default();
            agents.insert(name.to_owned(), AgentSetting { model, budget, memory });
        }
        let engagements = EngagementSetting::read(fields.object("engagements")?)?;
        let remote_time = match fields.object("remote_agents")? {
            None => TIME_DEFAULT,
            Some(remote) => {
                let time = remote.seconds("timeout_seconds", TIME_DEFAULT, REMOTE_TIME_MAX)?;
                remote.finish()?;
                time
            }
        };
        let content = match fields.object("telemetry")? {
            None => false,
            Some(telemetry) => {
                let content = telemetry.flag("content", false)?;
                telemetry.finish()?;
                content
            }
        };
        fields.finish()?;
        Ok(Self { tools, vault, models, default_model, agents, budget, days, engagements, remote_time, content })
    }

    /// Whether collectors are shown what is said, put in and brought out; never unless the operator says so.
    pub fn shows_content(&self) -> bool {
        self.content
    }

    /// What engagements are allowed beyond the text, or less.
    pub fn engagements(&self) -> EngagementSetting {
        self.engagements
    }

    /// What each user and each owner may use in a day.
    pub fn budgets_per_day(&self) -> DayBudgets {
        self.days
    }

    /// How long a call of an agent of another server may take.
    pub fn remote_time(&self) -> Duration {
        self.remote_time
    }

    /// What an agent is given: its own settings, else those of the server.
    pub fn agent(&self, name: &str) -> AgentSetting {
        let own = self.agents.get(name).cloned().unwrap_or_default();
        AgentSetting {
            model: own.model.or_else(|| self.default_model.clone()),
            budget: own.budget.or(&self.budget),
            memory: own.memory,
        }
    }
}
