//! RFC 0020 B.2: all documents that belong to one intent, from the question to its receipts.

use crate::account::State;
use json::Document;
use trust::Digest;

/// One intent and what came of it.
#[derive(Clone, Debug)]
pub struct Story {
    /// The signed question.
    pub intent: Document,
    /// The signed answers, page by page.
    pub answers: Vec<Document>,
    /// The payments, in the order in which money was set aside.
    pub payments: Vec<Payment>,
}

/// One try of a payment, with its documents as far as there are any.
#[derive(Clone, Debug)]
pub struct Payment {
    /// The name of the payment.
    pub key: Digest,
    /// Which try it is.
    pub attempt: u32,
    /// How far it came.
    pub state: State,
    /// What permits it.
    pub mandate: Document,
    /// What was asked of the wallet.
    pub request: Document,
    /// What the wallet granted.
    pub session: Option<Document>,
    /// How the settlement ended.
    pub confirmation: Option<Document>,
    /// The receipt.
    pub receipt: Option<Document>,
    /// Why it was given up, where it was.
    pub released: Option<String>,
}
