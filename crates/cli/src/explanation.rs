//! RFC 0020 §3.7: everything that is known about one decision.

use crate::answer::unanswered;
use crate::chance;
use crate::failure::Failure;
use aql::{Candidate, Decision, Evaluator, Fuel, Instant, Intent, Judgement, OverBudget, Ranking, Signals};
use json::{Document, Limits, Value, Writer, json};

/// One candidate, judged, with the whole record of it.
pub(crate) struct Explanation<'a> {
    pub(crate) intent: &'a Intent,
    pub(crate) candidate: &'a Candidate,
    pub(crate) judgement: Judgement,
    /// Score and inputs, for what fits.
    pub(crate) ranking: Option<Ranking>,
    /// Its place in the answer, when it is in it.
    pub(crate) rank: Option<usize>,
    /// How many are in the answer.
    pub(crate) answers: usize,
    /// The decision record.
    pub(crate) record: Document,
}

/// One signal of the quality floor.
pub(crate) struct Floor {
    pub(crate) signal: &'static str,
    /// `at least` or `at most`.
    pub(crate) bound: &'static str,
    pub(crate) floor: Value,
    pub(crate) found: Option<Value>,
    pub(crate) met: bool,
}

impl<'a> Explanation<'a> {
    /// Judges one of the candidates, alone and among the others.
    pub(crate) fn of(
        intent: &'a Intent,
        candidates: &'a [Candidate],
        candidate: &'a Candidate,
        over_budget: OverBudget,
        now: Instant,
    ) -> Result<Self, Failure> {
        let judgement =
            aql::judge(intent, candidate, over_budget, &mut Evaluator::new(Fuel::OWN)).map_err(unanswered)?;
        let all = aql::resolve(intent, candidates, over_budget, Fuel::OWN).map_err(unanswered)?;
        let rank = all.matches.iter().find(|found| std::ptr::eq(found.candidate, candidate)).map(|found| found.rank);
        // Alone it is never left out, so this gives the score of what the policy has no room for, too.
        let alone = aql::resolve(intent, std::slice::from_ref(candidate), over_budget, Fuel::OWN);
        let ranking = alone.map_err(unanswered)?.matches.into_iter().next().map(|found| found.ranking);
        let decision = Decision {
            decision_id: &format!("urn:oap:aql-decision:{}", chance::uuid()?),
            evaluated_at: &now.to_string(),
            intent,
            candidate,
            judgement: &judgement,
            ranking: ranking.as_ref().map(|ranking| (ranking, rank.unwrap_or(0))),
        };
        let mut writer = Writer::default();
        decision.write(&mut writer).map_err(unanswered)?;
        let record = Document::parse(&writer.finish(), &Limits::OURS);
        let record = record.map_err(|error| Failure::refused(format!("the decision record: {error}")))?;
        Ok(Self { intent, candidate, judgement, ranking, rank, answers: all.matches.len(), record })
    }

    /// Each declared floor with what was found.
    pub(crate) fn floors(&self) -> Vec<Floor> {
        let (floor, found) = (&self.intent.quality_floor, self.candidate.quality());
        let mut floors = Vec::new();
        let mut add = |signal, bound, declared: Option<Value>, found: Option<Value>, only: Signals| {
            if let Some(declared) = declared {
                let met = only.unmet(self.candidate.quality()).is_empty();
                floors.push(Floor { signal, bound, floor: declared, found, met });
            }
        };
        let number = |value: Option<f64>| value.map(Value::from);
        let level = |signals: &Signals| signals.conformance_level.as_ref().map(|level| Value::from(level.to_string()));
        add(
            "performance_score",
            "at least",
            number(floor.performance_score),
            number(found.performance_score),
            Signals { performance_score: floor.performance_score, ..Signals::default() },
        );
        add(
            "conformance_level",
            "at least",
            level(floor),
            level(found),
            Signals { conformance_level: floor.conformance_level.clone(), ..Signals::default() },
        );
        add(
            "latency_p99_ms",
            "at most",
            number(floor.latency_p99_ms),
            number(found.latency_p99_ms),
            Signals { latency_p99_ms: floor.latency_p99_ms, ..Signals::default() },
        );
        add(
            "provider_reputation",
            "at least",
            number(floor.provider_reputation),
            number(found.provider_reputation),
            Signals { provider_reputation: floor.provider_reputation, ..Signals::default() },
        );
        add(
            "cooling_off_minutes",
            "at least",
            number(floor.cooling_off_minutes),
            number(found.cooling_off_minutes),
            Signals { cooling_off_minutes: floor.cooling_off_minutes, ..Signals::default() },
        );
        floors
    }

    /// Each include as written, and whether the record supplies it.
    pub(crate) fn includes(&self) -> Vec<(&'a str, bool)> {
        let failed = self.intent.projection.apply(self.candidate.record(), &mut 0).err().unwrap_or_default();
        let supplied = |text: &str| !failed.iter().any(|pointer| pointer == text);
        self.intent.projection.include().iter().map(|path| (path.text(), supplied(path.text()))).collect()
    }

    /// The explanation for programs.
    pub(crate) fn to_value(&self) -> Value {
        let floors: Vec<Value> = self
            .floors()
            .into_iter()
            .map(|floor| json!({"signal": floor.signal, "floor": floor.floor, "found": floor.found, "met": floor.met}))
            .collect();
        let includes: Vec<Value> = self
            .includes()
            .into_iter()
            .map(|(pointer, supplied)| json!({"pointer": pointer, "supplied": supplied}))
            .collect();
        let cost = self.intent.budget.as_ref().map(|budget| {
            json!({
                "amount": self.judgement.cost.map(|cost| cost.to_string()),
                "ceiling": budget.ceiling.amount.to_string(),
                "currency": budget.ceiling.currency,
                "over_budget": self.judgement.over_budget,
            })
        });
        json!({
            "candidate_id": self.candidate.id,
            "cost": cost,
            "decision_record": self.record.root().to_value(),
            "intent_id": self.intent.intent_id,
            "projection": includes,
            "quality_floor": floors,
            "rank": self.rank,
        })
    }
}
