//! RFC 0020 B.1: the `payment_constraints` block of a commercial intent.
//!
//! A resolver reads it, keeps it under the signature and passes it on; agents and wallets act on it.

use crate::budget::Money;
use crate::read::{Place, Values, currency};
use crate::refusal::Refusal;
use json::{Node, Pointer};

/// What a payment for this intent must observe, beside the mandate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaymentConstraints {
    /// Only these instruments, within those of the mandate.
    pub allowed_instruments: Option<Vec<String>>,
    /// None of these, whatever is allowed.
    pub disallowed_instruments: Vec<String>,
    /// The first choice.
    pub preferred_instrument: Option<String>,
    /// The ceiling of one payment.
    pub max_single_payment: Option<Money>,
    /// Whether the counterparty's account must be bound to its DID.
    pub require_bank_account_vc: bool,
    /// Only these commerce primitives, within those of the mandate.
    pub allowed_commerce_primitives: Option<Vec<String>>,
    /// The currency to settle in.
    pub settlement_currency_preference: Option<String>,
    /// Whether the session is a parametric one of long validity.
    pub auction_parametric_session: bool,
}

impl PaymentConstraints {
    pub(crate) fn read(place: &Place<'_>) -> Result<Self, Refusal> {
        place.closed(&[
            "allowed_instruments",
            "disallowed_instruments",
            "preferred_instrument",
            "max_single_payment",
            "require_bank_account_vc",
            "allowed_commerce_primitives",
            "settlement_currency_preference",
            "auction_parametric_session",
        ])?;
        let strings = |name: &str| place.member(name).map(|member| member.strings()).transpose();
        let flag = |name: &str| place.member(name).map_or(Ok(false), |member| member.boolean());
        let preferred = place.member("preferred_instrument");
        Ok(Self {
            allowed_instruments: strings("allowed_instruments")?,
            disallowed_instruments: strings("disallowed_instruments")?.unwrap_or_default(),
            preferred_instrument: preferred.map(|member| member.string().map(str::to_owned)).transpose()?,
            max_single_payment: place.member("max_single_payment").map(|money| Money::read(&money)).transpose()?,
            require_bank_account_vc: flag("require_bank_account_vc")?,
            allowed_commerce_primitives: strings("allowed_commerce_primitives")?,
            settlement_currency_preference: place
                .member("settlement_currency_preference")
                .map(|member| currency(&member))
                .transpose()?,
            auction_parametric_session: flag("auction_parametric_session")?,
        })
    }

    /// Reads a block that stands elsewhere, such as `intent_payment_constraints` of a session request.
    pub fn of(node: Node<'_>, at: Pointer) -> Result<Self, Refusal> {
        Self::read(&Place::new(node, at))
    }

    /// Whether a session may use an instrument that the mandate permits; `disallowed` wins over `allowed`.
    pub fn permits_instrument(&self, instrument: &str, mandate: &[String]) -> bool {
        let listed = |list: &[String]| list.iter().any(|entry| entry == instrument);
        listed(mandate)
            && self.allowed_instruments.as_deref().is_none_or(listed)
            && !listed(&self.disallowed_instruments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruments_compose_by_intersection_and_disallowed_wins() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mandate = list(&["sepa-ct", "sepa-instant", "card"]);
        let constraints = PaymentConstraints {
            allowed_instruments: Some(list(&["sepa-ct", "sepa-instant", "evm"])),
            disallowed_instruments: list(&["sepa-instant"]),
            ..PaymentConstraints::default()
        };
        assert!(constraints.permits_instrument("sepa-ct", &mandate));
        assert!(!constraints.permits_instrument("sepa-instant", &mandate));
        assert!(!constraints.permits_instrument("evm", &mandate));
        assert!(!constraints.permits_instrument("card", &mandate));
        assert!(PaymentConstraints::default().permits_instrument("card", &mandate));
    }
}
