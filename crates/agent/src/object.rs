//! OAS Engagement: the object that assertions see, exactly the fields that the text lists.
//!
//! While a call's input is judged, `recent.{key}` holds the proposed inputs alone and nothing else knows of the call yet;
//! while its output is judged, everything does. Outputs that were withheld or are not collected are in neither
//! (decisions/0213).
//!
//! INVARIANT: an output that was not released is in no object but the one that its own judgement sees.

use crate::{Agent, Call, Engagement, Stage};
use json::{Map, Value, json};

impl Engagement {
    /// The object as it stands between calls: what `exposes` selects from, and what may be shown.
    pub fn object(&self, agent: &Agent) -> Value {
        self.object_with(agent, None)
    }

    /// The object as the judgement of one end of a call sees it.
    pub fn object_at(&self, agent: &Agent, call: usize, stage: Stage) -> Value {
        self.object_with(agent, Some((call, stage)))
    }

    fn object_with(&self, agent: &Agent, judged: Option<(usize, Stage)>) -> Value {
        let mut recent = Map::new();
        let mut history = Map::new();
        let mut list = Vec::new();
        recent.insert("_name".to_owned(), Value::Null);
        for capability in &agent.capabilities {
            history.insert(capability.key.clone(), json!([]));
        }
        for (number, call) in self.calls().iter().enumerate() {
            let Some(key) = &call.capability else { continue };
            let is_judged = judged == Some((number, Stage::Output));
            if !call.was_invoked() {
                continue;
            }
            let collects = agent.capability(key).is_some_and(|capability| capability.collect_results);
            let entry = entry(call, if is_judged { call.unjudged() } else { call.released().filter(|_| collects) });
            list.push(Value::from(key.as_str()));
            recent.insert("_name".to_owned(), Value::from(key.as_str()));
            recent.insert(key.clone(), entry.clone());
            if let Some(Value::Array(entries)) = history.get_mut(key) {
                entries.push(entry);
            }
        }
        if let Some((number, Stage::Input)) = judged
            && let Some(call) = self.calls().get(number)
            && let Some(key) = &call.capability
        {
            recent.insert(key.clone(), entry(call, None));
        }
        history.insert("_total".to_owned(), Value::from(list.len()));
        history.insert("_list".to_owned(), Value::Array(list));
        json!({"started_at": self.begun().started_at, "user": self.user(), "recent": recent, "history": history})
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

fn entry(call: &Call, outputs: Option<Value>) -> Value {
    let mut entry = Map::new();
    entry.insert("inputs".to_owned(), call.inputs.clone());
    if let Some(outputs) = outputs {
        entry.insert("outputs".to_owned(), outputs);
    }
    Value::Object(entry)
}
