//! OAS Engagement: the object that assertions see, exactly the fields that the text lists.
//!
//! While a call's input is judged, `recent.{key}` holds the proposed inputs alone and nothing else knows of the call yet;
//! while its output is judged, everything does. Outputs that were withheld or are not collected are in neither
//! (decisions/0213).
//!
//! INVARIANT: an output that was not released is in no object but the one that its own judgement sees.

use crate::{Agent, Assertion, Call, Engagement, Stage};
use json::{Map, Value, json};

impl Engagement {
    /// The object as it stands between calls: what `exposes` selects from, and what may be shown.
    pub fn object(&self, agent: &Agent) -> Value {
        self.object_with(agent, None, true)
    }

    /// The object as the judgement of one end of a call sees it.
    pub fn object_at(&self, agent: &Agent, call: usize, stage: Stage) -> Value {
        self.object_with(agent, Some((call, stage)), true)
    }

    /// The same for one assertion: `history` is left out where it does not speak of it.
    pub(crate) fn object_for(&self, agent: &Agent, call: usize, stage: Stage, assertion: &Assertion) -> Value {
        self.object_with(agent, Some((call, stage)), assertion.speaks_of("history"))
    }

    fn object_with(&self, agent: &Agent, judged: Option<(usize, Stage)>, with_history: bool) -> Value {
        let known = |(number, call)| known(agent, judged, number, call);
        let made: Vec<(&str, Made<'_>)> = self.calls().iter().enumerate().filter_map(known).collect();
        let mut recent = Map::new();
        recent.insert("_name".to_owned(), made.last().map_or(Value::Null, |(key, _)| Value::from(*key)));
        let mut last: Vec<&(&str, Made<'_>)> = Vec::new();
        for one in &made {
            match last.iter_mut().find(|known| known.0 == one.0) {
                Some(before) => *before = one,
                None => last.push(one),
            }
        }
        recent.extend(last.into_iter().map(|(key, made)| ((*key).to_owned(), made.entry())));
        if let Some((number, Stage::Input)) = judged
            && let Some(call) = self.calls().get(number)
            && let Some(key) = &call.capability
        {
            recent.insert(key.clone(), Made { call, outputs: Seen::None }.entry());
        }
        let mut object = json!({"started_at": self.begun().started_at, "user": self.user(), "recent": recent});
        if let (Some(members), true) = (object.as_object_mut(), with_history) {
            members.insert("history".to_owned(), history(agent, &made));
        }
        object
    }

    fn user(&self) -> Value {
        let mut user = json!({"id": null});
        if let (Some(known), Some(members)) = (&self.begun().user, user.as_object_mut()) {
            members.insert("id".to_owned(), Value::from(known.id.as_str()));
            if let Some(email) = &known.email {
                members.insert("email".to_owned(), Value::from(email.as_str()));
            }
        }
        user
    }
}

/// A call that was made, and how much of its outputs may be seen.
struct Made<'a> {
    call: &'a Call,
    outputs: Seen,
}

/// Which outputs of a call may be seen.
#[derive(Clone, Copy)]
enum Seen {
    None,
    Released,
    /// Also what nobody has judged, since that is what is being judged.
    All,
}

impl Made<'_> {
    fn entry(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("inputs".to_owned(), self.call.inputs.clone());
        let outputs = match self.outputs {
            Seen::None => None,
            Seen::Released => self.call.released(),
            Seen::All => self.call.unjudged(),
        };
        if let Some(outputs) = outputs {
            entry.insert("outputs".to_owned(), outputs);
        }
        Value::Object(entry)
    }
}

/// A call by its key, if it was made.
fn known<'a>(
    agent: &Agent,
    judged: Option<(usize, Stage)>,
    number: usize,
    call: &'a Call,
) -> Option<(&'a str, Made<'a>)> {
    let key = call.capability.as_deref().filter(|_| call.was_invoked())?;
    let collects = || agent.capability(key).is_some_and(|capability| capability.collect_results);
    let outputs = match judged == Some((number, Stage::Output)) {
        true => Seen::All,
        false if collects() => Seen::Released,
        false => Seen::None,
    };
    Some((key, Made { call, outputs }))
}

fn history(agent: &Agent, made: &[(&str, Made<'_>)]) -> Value {
    let mut history = Map::new();
    for capability in &agent.capabilities {
        history.insert(capability.key.clone(), json!([]));
    }
    for (key, made) in made {
        if let Some(Value::Array(entries)) = history.get_mut(*key) {
            entries.push(made.entry());
        }
    }
    history.insert("_total".to_owned(), Value::from(made.len()));
    history.insert("_list".to_owned(), made.iter().map(|(key, _)| Value::from(*key)).collect());
    Value::Object(history)
}
