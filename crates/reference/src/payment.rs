//! RFC 0020 B.1: the payment_constraints block, which only a commercial intent may carry.
//!
//! A resolver has to accept and keep it; the agent and the wallet act on it. It is therefore checked here and then
//! left alone.

use crate::fields::{Field, Fields};
use crate::refusal::Refusal;

const MEMBERS: [&str; 8] = [
    "allowed_instruments",
    "disallowed_instruments",
    "preferred_instrument",
    "max_single_payment",
    "require_bank_account_vc",
    "allowed_commerce_primitives",
    "settlement_currency_preference",
    "auction_parametric_session",
];

/// Checks a payment_constraints block.
pub(crate) fn check_payment_constraints(block: &Field) -> Result<(), Refusal> {
    let fields = block.closed(&MEMBERS)?;
    for name in ["allowed_instruments", "disallowed_instruments", "allowed_commerce_primitives"] {
        check_texts(&fields, name)?;
    }
    if let Some(instrument) = fields.optional("preferred_instrument") {
        instrument.text()?;
    }
    if let Some(currency) = fields.optional("settlement_currency_preference") {
        currency.currency()?;
    }
    if let Some(payment) = fields.optional("max_single_payment") {
        let payment = payment.closed(&["amount", "currency"])?;
        payment.required("amount")?.amount()?;
        payment.required("currency")?.currency()?;
    }
    for name in ["require_bank_account_vc", "auction_parametric_session"] {
        if let Some(switch) = fields.optional(name) {
            switch.boolean()?;
        }
    }
    Ok(())
}

fn check_texts(fields: &Fields, name: &str) -> Result<(), Refusal> {
    let Some(list) = fields.optional(name) else { return Ok(()) };
    for text in list.elements()? {
        text.text()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check(block: &str, refused: Option<(&str, &str)>) {
        let block = value(block);
        let refusal = check_payment_constraints(&Field::new(&block, "")).err();
        let refusal = refusal.as_ref().map(|refusal| (refusal.code, refusal.at.as_str()));
        assert_eq!(refusal, refused);
    }

    #[test]
    fn every_member_is_optional_and_typed() {
        check("{}", None);
        check(
            r#"{"allowed_instruments":["a"],"disallowed_instruments":[],"preferred_instrument":"a",
                "max_single_payment":{"amount":"5.00","currency":"EUR"},"require_bank_account_vc":true,
                "allowed_commerce_primitives":["b"],"settlement_currency_preference":"EUR",
                "auction_parametric_session":false}"#,
            None,
        );
        check("[]", Some(("wrong_type", "")));
        check(r#"{"x":1}"#, Some(("unknown_field", "/x")));
        check(r#"{"allowed_instruments":"a"}"#, Some(("wrong_type", "/allowed_instruments")));
        check(r#"{"disallowed_instruments":[1]}"#, Some(("wrong_type", "/disallowed_instruments/0")));
        check(r#"{"allowed_commerce_primitives":{}}"#, Some(("wrong_type", "/allowed_commerce_primitives")));
        check(r#"{"preferred_instrument":1}"#, Some(("wrong_type", "/preferred_instrument")));
        check(
            r#"{"settlement_currency_preference":"euro"}"#,
            Some(("invalid_value", "/settlement_currency_preference")),
        );
        check(r#"{"require_bank_account_vc":1}"#, Some(("wrong_type", "/require_bank_account_vc")));
        check(r#"{"auction_parametric_session":"no"}"#, Some(("wrong_type", "/auction_parametric_session")));
        check(r#"{"max_single_payment":{"amount":"5"}}"#, Some(("missing_field", "/max_single_payment/currency")));
        check(
            r#"{"max_single_payment":{"amount":"-5","currency":"EUR"}}"#,
            Some(("invalid_decimal", "/max_single_payment/amount")),
        );
        check(
            r#"{"max_single_payment":{"amount":"5","currency":"EUR","x":1}}"#,
            Some(("unknown_field", "/max_single_payment/x")),
        );
    }
}
