//! RFC 0020 §3.3, §3.4, §3.5, §3.7, A.3, A.6: the rules an answer can break, each under a stable name.
//!
//! `docs/violations.md` shows this list; a test holds the two together. A rule is never renamed and never changes its
//! meaning.

use json::Pointer;

/// A rule that an answer breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The place in the answer.
    pub at: Pointer,
    /// What is wrong, in words.
    pub detail: String,
}

macro_rules! rules {
    ($($variant:ident $name:literal $section:literal $meaning:literal)+) => {
        /// What an answer is held to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rule {
            $(#[doc = $meaning] $variant,)+
        }

        impl Rule {
            /// All rules, in the order of the text.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The section of the text that is broken.
            pub fn section(self) -> &'static str {
                match self { $(Self::$variant => $section,)+ }
            }

            /// What it means to break the rule.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

rules! {
    MissingMember "shape_missing_member" "RFC 0020 §3.7"
        "A required member of the response, a candidate or a decision record is absent."
    UnknownMember "shape_unknown_member" "RFC 0020 §3.7"
        "A closed object has a member that its published shape does not have."
    WrongType "shape_wrong_type" "RFC 0020 §3.7"
        "A member has another JSON type than its published shape."
    InvalidValue "shape_invalid_value" "RFC 0020 §3.7"
        "A member has the right type and content that its published shape does not take."
    IntentIdDiffers "intent_id_differs" "RFC 0020 §3.7"
        "The response names another intent."
    OutsideWindow "outside_window" "RFC 0020 §2"
        "The response or a decision was made while the intent was not open."
    CandidateRepeated "candidate_repeated" "RFC 0020 §3.7"
        "One candidate stands in the answer twice."
    DecisionRepeated "decision_repeated" "RFC 0020 §3.7"
        "Two decision records have one name."
    TooManyCandidates "too_many_candidates" "RFC 0020 A.3 R5"
        "There are more candidates than the resolution policy or `top_k` leaves room for."
    RankOutOfPlace "rank_out_of_place" "RFC 0020 A.3 R5"
        "A rank is not the candidate's place in the list, counted from one without gaps."
    ScoreOutOfOrder "score_out_of_order" "RFC 0020 A.3 R5"
        "A candidate stands behind one with a lower score."
    TieOutOfOrder "tie_out_of_order" "RFC 0020 A.6"
        "Two candidates of one score stand against the tie-break of the named ranking function."
    OverBudgetOutOfOrder "over_budget_out_of_order" "RFC 0020 §3.4"
        "A candidate that fits the budget stands behind one that does not."
    OverBudgetUnflagged "over_budget_unflagged" "RFC 0020 §3.4"
        "A candidate is over budget by its decision record and is not flagged."
    OverBudgetMisflagged "over_budget_misflagged" "RFC 0020 §3.4"
        "A candidate is flagged as over budget and its decision record says otherwise."
    RejectedReturned "rejected_returned" "RFC 0020 A.3 R3"
        "A candidate is returned although its own decision record rejects it."
    BelowFloorReturned "below_floor_returned" "RFC 0020 §3.5"
        "A candidate is returned although its decision record or its ranking inputs put it below the quality floor."
    AcceptedWithheld "accepted_withheld" "RFC 0020 A.3 R3"
        "A candidate stands among the rejected although its own decision record accepts it."
    OutcomeGroundless "outcome_groundless" "RFC 0020 A.3 R3"
        "An outcome speaks of a budget or a quality floor that the intent does not have."
    OutcomeOutOfTurn "outcome_out_of_turn" "RFC 0020 A.3 R3"
        "A rejection names the budget or the quality floor although the constraints, which come first, do not hold."
    RejectionUnexplained "rejection_unexplained" "RFC 0020 A.3 R3"
        "Every constraint holds, the candidate is rejected, and the record does not say why."
    ConstraintsNotMet "constraints_not_met" "RFC 0020 A.4"
        "A candidate is returned although the constraint tree does not hold by the leaves its record reports."
    EvaluationsMiscounted "evaluations_miscounted" "RFC 0020 A.3 R3"
        "The record has not exactly one evaluation for each leaf of the intent."
    EvaluationMisquoted "evaluation_misquoted" "RFC 0020 A.6"
        "An evaluation does not repeat path, operator and value of its leaf, in reading order."
    LeafUntrue "leaf_untrue" "RFC 0020 A.1"
        "The payload settles a leaf, and the record reports the opposite."
    LeavesContradict "leaves_contradict" "RFC 0020 A.1"
        "Two evaluations of one record cannot both be true."
    ValueBeyondProjection "candidate_value_beyond_projection" "RFC 0020 §3.3"
        "A record shows a value that the leaf does not reach inside the projection."
    ValueContradicts "candidate_value_contradicts" "RFC 0020 A.1"
        "The value that a record shows does not fit the truth it reports."
    PayloadBeyondInclude "payload_beyond_include" "RFC 0020 §3.3"
        "The payload has something that no `include` reaches."
    PayloadExcluded "payload_excluded" "RFC 0020 §3.3"
        "The payload has something that an `exclude` reaches."
    IncludeUnsupplied "include_unsupplied" "RFC 0020 §3.3"
        "The payload lacks what an `include` asks for."
    RankingDiffers "ranking_differs" "RFC 0020 A.6"
        "The candidate has another score or rank than its ranking function gave."
    RankingInputs "ranking_inputs" "RFC 0020 A.6"
        "The inputs or weights are not those of the named ranking function."
    RankingValue "ranking_value" "RFC 0020 A.6"
        "An input has a value that it cannot have under this intent and outcome."
    RankingContribution "ranking_contribution" "RFC 0020 A.6"
        "A contribution is not its value times its weight."
    RankingSum "ranking_sum" "RFC 0020 A.6"
        "The score is not the sum of the contributions."
}
