//! RFC 0020 Appendix B: money that can be traced, from the intent to the receipt.
//!
//! | Section | Room |
//! |---|---|
//! | §3.4 | `plan`: what an allocation asks to be paid |
//! | B.1 | `mandate`, `wallet`: what a payment must observe, and who enforces it |
//! | B.2 | `session`, `confirmation`, `receipt`, `trace`: one `intent_id` through all documents |
//! | B.3 | `account`, `ledger`: the sum of sessions stays within the budget |
//!
//! INVARIANT: no IO, clock, chance, `async` or logging in this crate; time, names and signatures are arguments.

mod refusal;
mod read;
mod money;
mod keyring;
mod chain;

mod plan;
mod mandate;
mod session;
pub mod wallet;
mod confirmation;
mod receipt;

mod account;
mod ledger;
mod story;
mod trace;
mod spending;

pub use account::{Account, Accounts, Paid, State, Step};
pub use chain::{Flaw as ChainFlaw, Tip, lines};
pub use confirmation::{Confirmation, Error as SettlementError, Settlement, Status, countersign};
pub use keyring::{Keyring, digest, sign_listed};
pub use ledger::{Ledger, Line};
pub use mandate::{Mandate, PRIMITIVES};
pub use money::{DECIMALS_MAX, money};
pub use plan::{LeftOut, Plan, Planned, Terms, Why, plan};
pub use receipt::{Receipt, receipt};
pub use refusal::{Code, Refusal};
pub use session::{
    Approval, Execution, PARAMETRIC_SECONDS, Request, STANDARD_SECONDS, Session, SessionStatus, Wanted, approval,
    execution, idempotency_key, request,
};
pub use spending::{Period, Spending, spending};
pub use story::{Payment, Story};
pub use trace::{Flaw, Trace, trace};
