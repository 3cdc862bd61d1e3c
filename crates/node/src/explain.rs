//! RFC 0020 §3.7, §5: why one candidate is or is not in the answer to an intent.
//!
//! Whoever asked may ask why: the full decision record of any candidate that is held, or the signed statement that it
//! is not held.

use crate::clock::instant;
use crate::collection::Collection;
use crate::gate::{Own, own_views};
use crate::lanes::Lane;
use crate::node::Node;
use crate::quota::Purpose;
use crate::refusal::{Class, Error, Refusal};
use crate::resolve::{Accepted, Decided, Judged, candidate, evaluator};
use crate::versions::{self, MEMBERS};
use aql::Decision;
use json::{Document, Pointer, Value, Writer, json};
use std::sync::Arc;
use trust::Did;

/// Every intent that may be asked may be asked about, with a candidate's id beside it.
const REQUEST: json::Limits = json::Limits {
    bytes: json::Limits::INTENT.bytes + 16 * 1024,
    depth: json::Limits::INTENT.depth + 1,
    nodes: json::Limits::INTENT.nodes + 2,
    ..json::Limits::INTENT
};

impl Node {
    /// Explains a candidate, or the question as a whole when none is named.
    pub async fn explain(self: &Arc<Self>, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.explain_to(bytes, None).await
    }

    /// The same for somebody who is proved: the intent is signed, or his own.
    pub(crate) async fn explain_to(self: &Arc<Self>, bytes: &[u8], sender: Option<&Did>) -> Result<Vec<u8>, Error> {
        let request = Document::parse(bytes, &REQUEST)?;
        let root = request.root();
        if let Some((name, _)) =
            root.members().find(|(name, _)| !["intent", "candidate_id"].contains(name) && !MEMBERS.contains(name))
        {
            let at = Pointer::root().child(name);
            let detail = "an explanation is asked for with `intent` and `candidate_id`";
            return Err(Refusal::new(Class::InvalidInput, "unknown_field", detail).at(at).into());
        }
        let at = Pointer::root().child("intent");
        let missing = || Refusal::new(Class::InvalidInput, "missing_field", "the signed intent belongs here").at(at);
        let document = root.get("intent").ok_or_else(missing)?.to_document();
        let wanted = match root.get("candidate_id") {
            None => None,
            Some(id) => Some(id.as_str().map(str::to_owned).ok_or_else(|| {
                let at = Pointer::root().child("candidate_id");
                Refusal::new(Class::InvalidInput, "wrong_type", "a candidate is named by a text").at(at)
            })?),
        };
        let received = self.receive_for_explanation(document, sender)?;
        let keys = self.issuer_keys(&received).await?;
        let delegation = self.delegation(&received, keys.as_deref()).await?;
        let (node, lane) = (Arc::clone(self), Lane::of(&received.intent.constraints));
        self.work_in(lane, move || {
            let accepted = received.verify(keys.as_deref(), delegation)?;
            node.charge(&accepted.issuer, Purpose::Explanation)?;
            node.charge_question(&accepted)?;
            node.count(&accepted);
            node.versions.count(versions::EXPLAIN, None, Some(accepted.issuer.as_str()), node.clock.millis());
            let mut output = match wanted {
                Some(id) => node.explain_candidate(&accepted, &id)?,
                None => node.explain_question(&accepted)?,
            };
            let warning = accepted.exchange.as_ref().and_then(|exchange| exchange.warning.clone());
            if let (Some(members), Some(warning)) = (output.as_object_mut(), warning) {
                members.insert("deprecation_warning".to_owned(), warning);
            }
            Ok(node.envelope(&accepted.intent.intent_id, output, node.clock.millis()))
        })
        .await
    }

    /// The decision record of a candidate, or the statement that it is not held.
    fn explain_candidate(&self, accepted: &Accepted, id: &str) -> Result<Value, Error> {
        let intent = &accepted.intent;
        let mut output = json!({
            "type": "oap.explanation",
            "intent_id": intent.intent_id,
            "candidate_id": id,
            "resolver_did": self.identity.did().as_str(),
            "held": false,
        });
        let Some(judged) = self.find(accepted, id)? else { return Ok(output) };
        let Decided { mut judged, verdict, .. } = self.decide(accepted, judged);
        let rank = if judged.judgement.is_match(self.over_budget) { self.rank_of(accepted, id)? } else { None };
        let mut ranking = aql::rank(intent, judged.candidate.quality(), judged.judgement.cost);
        let rank = rank.map(|(rank, repeats)| {
            ranking.repeats = repeats;
            rank
        });
        let decision_id = format!("urn:rialto:decision:{}", crate::chance::name()?);
        let evaluated_at = instant(self.clock.millis()).to_string();
        let policy = verdict.map(|verdict| {
            let name = format!("{decision_id}#policy-1");
            judged.judgement.policy_decision_ref = Some(name.clone());
            verdict.to_record(&name, &evaluated_at)
        });
        let decision = Decision {
            decision_id: &decision_id,
            evaluated_at: &evaluated_at,
            intent,
            candidate: &judged.candidate,
            judgement: &judged.judgement,
            ranking: rank.map(|rank| (&ranking, rank)),
        };
        let mut writer = Writer::default();
        decision.write(&mut writer)?;
        let record = Document::parse(&writer.finish(), &json::Limits::OURS).map_err(Error::fault)?;
        if let Some(members) = output.as_object_mut() {
            members.insert("held".into(), json!(true));
            members.insert("decision_record".into(), record.root().to_value());
            members.extend(policy.map(|policy| ("policy_decision".to_owned(), policy)));
        }
        Ok(output)
    }

    /// A candidate of the intent's category by its id, judged.
    fn find(&self, accepted: &Accepted, id: &str) -> Result<Option<Judged>, Error> {
        let intent = &accepted.intent;
        let Some(collection) = Collection::of(intent.category) else { return Ok(None) };
        let record = match collection {
            Collection::Actions => id.rsplit_once('#').map_or(id, |(manifest, _)| manifest),
            _ => id,
        };
        let Some(record) = self.store.listed(record)? else { return Ok(None) };
        let found = self.with_market(accepted, |market| {
            let alive = market.alive();
            let named = |unit: &index::Unit| alive.contains(*unit) && market.id(*unit) == Some(id);
            let unit = market.units_of(record.number).into_iter().find(named);
            Ok(unit.map(|unit| (market.look_at(unit), Own::is_own(unit))))
        })?;
        let Some(((part, signals), is_own)) = found else { return Ok(None) };
        let own = if is_own { own_views(&self.store, &[record.number], &accepted.viewer)?.pop() } else { None };
        let view = own.map_or_else(|| self.catalog.view(&self.store, record.number), Ok)?;
        let candidate = candidate(view, part, signals)?;
        let mut evaluator = evaluator();
        let judgement = aql::judge(intent, &candidate, self.over_budget, &mut evaluator)?;
        let judged = Judged { candidate, judgement };
        let member = self.is_member(intent, &judged, &mut evaluator)?;
        Ok(Some(judged).filter(|_| member))
    }
}
