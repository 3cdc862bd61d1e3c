//! RFC 0020 §3.4: exact amounts as payment documents write them.

use aql::{Amount, Money};
use json::{Value, json};

/// Fraction digits that a mandate or a settlement can carry; the published schemas say so.
pub const DECIMALS_MAX: usize = 8;

/// An amount in a currency.
pub fn money(amount: Amount, currency: &str) -> Money {
    Money { amount, currency: currency.to_owned() }
}

/// Cents at least, as people write money, and more digits only where there are any.
pub(crate) fn written(amount: Amount) -> String {
    let short = amount.to_string();
    let decimals = short.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    amount.with_scale(decimals.max(2))
}

/// As sessions and settlements write it.
pub(crate) fn value(money: &Money) -> Value {
    json!({"value": written(money.amount), "currency": money.currency})
}

pub(crate) fn sum(left: Amount, right: Amount) -> Option<Amount> {
    left.units().checked_add(right.units()).map(Amount::from_units)
}

/// What is left; nothing when more was taken than there was.
pub(crate) fn less(from: Amount, taken: Amount) -> Amount {
    Amount::from_units(from.units().saturating_sub(taken.units()))
}

/// The amount without what lies beyond the digits that a settlement carries.
pub(crate) fn payable(amount: Amount) -> Amount {
    let grain = 10u128.pow((aql::AMOUNT_DIGITS_MAX - DECIMALS_MAX) as u32);
    Amount::from_units(amount.units() / grain * grain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_with_cents_and_paid_with_eight_places() {
        for (given, text, paid) in [
            ("5", "5.00", "5.00"),
            ("0.5", "0.50", "0.50"),
            ("1.2345", "1.2345", "1.2345"),
            ("0.123456789", "0.123456789", "0.12345678"),
        ] {
            let amount = Amount::parse(given).unwrap();
            assert_eq!((written(amount), written(payable(amount))), (text.to_owned(), paid.to_owned()));
        }
    }
}
