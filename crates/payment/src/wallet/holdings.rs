//! RFC 0020 B.1: what a wallet of the development role holds, and what it knows of those it pays.

use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use aql::Amount;
use json::{Document, Node};
use std::collections::BTreeMap;

/// The rails of the published settlement confirmation.
const RAILS: [(&str, ()); 7] = [
    ("sepa_credit_transfer", ()),
    ("sepa_instant", ()),
    ("lightning_network", ()),
    ("evm_stablecoin", ()),
    ("card_network", ()),
    ("swift_mt", ()),
    ("swift_mx", ()),
];

/// What a wallet holds and knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// In the order in which they are chosen.
    pub instruments: Vec<Instrument>,
    /// By their DIDs.
    pub counterparties: BTreeMap<String, Counterparty>,
    /// Whether every counterparty's account must be bound to its DID, also where no intent asks for it.
    pub require_bank_account_vc: bool,
}

/// A way to pay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Its name.
    pub id: String,
    /// The rail that it uses.
    pub rail: String,
    /// The currency that it settles in.
    pub currency: String,
    /// What is on it, where that is bounded.
    pub balance: Option<Amount>,
    /// Whether its rail fails every time, to try what happens then.
    pub failing: bool,
}

/// What is known of somebody who may be paid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counterparty {
    /// Whether its bank account is proved to belong to its DID.
    pub bank_account_bound: bool,
    /// Its country.
    pub jurisdiction: Option<String>,
    /// What kinds of trade it does.
    pub categories: Vec<String>,
}

impl Holdings {
    /// What a wallet holds that nobody described: one instrument of each common kind.
    pub fn usual() -> Self {
        let kinds = [
            ("sepa-instant", "sepa_instant", "EUR"),
            ("sepa-ct", "sepa_credit_transfer", "EUR"),
            ("card", "card_network", "EUR"),
            ("evm_stablecoin", "evm_stablecoin", "USDC"),
            ("lightning_network", "lightning_network", "BTC"),
        ];
        let instrument = |(id, rail, currency): (&str, &str, &str)| Instrument {
            id: id.to_owned(),
            rail: rail.to_owned(),
            currency: currency.to_owned(),
            balance: None,
            failing: false,
        };
        Self { instruments: kinds.into_iter().map(instrument).collect(), ..Self::default() }
    }

    /// Reads a description of a wallet.
    pub fn read(document: &Document) -> Result<Self, Refusal> {
        let root = At::root(document.root());
        root.closed(&["instruments", "counterparties", "require_bank_account_vc"])?;
        let instruments = root.required("instruments")?.elements()?;
        let instruments: Vec<Instrument> = instruments.iter().map(Instrument::read).collect::<Result<_, _>>()?;
        if instruments.is_empty() {
            return root.required("instruments")?.refuse(Code::InvalidValue, "a wallet has an instrument at least");
        }
        let mut counterparties = BTreeMap::new();
        for (did, node) in root.member("counterparties").into_iter().flat_map(|list| list.node.members()) {
            let place = root.at.child("counterparties").child(did);
            counterparties.insert(did.to_owned(), Counterparty::read(&At::new(node, place))?);
        }
        Ok(Self { instruments, counterparties, require_bank_account_vc: flag(&root, "require_bank_account_vc") })
    }
}

impl Instrument {
    fn read(place: &At<'_>) -> Result<Self, Refusal> {
        place.closed(&["instrument_id", "rail", "currency", "balance", "failing"])?;
        place.word("rail", &RAILS)?;
        let balance = place.member("balance").map(|balance| {
            let read = Amount::parse(balance.string()?);
            read.map_or_else(|| balance.refuse(Code::InvalidDecimal, "a plain decimal belongs here"), Ok)
        });
        Ok(Self {
            id: place.text("instrument_id")?,
            rail: place.text("rail")?,
            currency: place.text("currency")?,
            balance: balance.transpose()?,
            failing: flag(place, "failing"),
        })
    }
}

impl Counterparty {
    fn read(place: &At<'_>) -> Result<Self, Refusal> {
        place.closed(&["bank_account_bound", "jurisdiction", "categories"])?;
        Ok(Self {
            bank_account_bound: flag(place, "bank_account_bound"),
            jurisdiction: place.member("jurisdiction").map(|_| place.text("jurisdiction")).transpose()?,
            categories: place.strings("categories")?.unwrap_or_default(),
        })
    }
}

fn flag(place: &At<'_>, name: &str) -> bool {
    place.node.get(name).and_then(Node::as_bool).unwrap_or(false)
}
