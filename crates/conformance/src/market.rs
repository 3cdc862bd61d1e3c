//! A market that does not exist: manifests drawn from a seed, as uneven as real ones.
//!
//! A manifest is its [`Facts`] written down. Any of them can be drawn alone, so questions take their constants from
//! manifests that exist without anybody reading the file.
//!
//! INVARIANT: the same seed and number give the same bytes; names and DIDs are unique.

use crate::chance::Chance;
use aql::Instant;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

const TRADES: [(&str, &str); 24] = [
    ("logistics", "Freight"),
    ("translation", "Translation"),
    ("weather", "Weather"),
    ("legal", "Counsel"),
    ("imaging", "Imaging"),
    ("accounting", "Ledger"),
    ("travel", "Travel"),
    ("catering", "Catering"),
    ("insurance", "Insurance"),
    ("energy", "Energy"),
    ("printing", "Print"),
    ("laboratory", "Laboratory"),
    ("mapping", "Maps"),
    ("recruiting", "Recruiting"),
    ("farming", "Farming"),
    ("property", "Property"),
    ("education", "Lessons"),
    ("health", "Health"),
    ("music", "Music"),
    ("repair", "Repair"),
    ("customs", "Customs"),
    ("archives", "Archive"),
    ("forestry", "Timber"),
    ("shipping", "Shipping"),
];

const FACETS: [&str; 12] = [
    "quotes", "booking", "tracking", "search", "planning", "records", "pricing", "alerts", "audit", "testing",
    "reports", "support",
];

const VERBS: [&str; 8] = ["get", "list", "create", "check", "order", "cancel", "compare", "export"];

const SIDE_EFFECTS: [&str; 4] = ["read", "write", "financial", "legal"];

const FIRST_WORDS: [&str; 64] = [
    "Amber", "Birch", "Cedar", "Copper", "Crescent", "Dawn", "Delta", "Eastern", "Elm", "Ember", "Fair", "Falcon",
    "Fern", "First", "Flint", "Garnet", "Golden", "Granite", "Green", "Grey", "Harbour", "Hazel", "Heron", "High",
    "Indigo", "Iron", "Ivory", "Jasper", "Juniper", "Kestrel", "Lark", "Linden", "Lower", "Maple", "Marble", "Meadow",
    "Mill", "North", "Oak", "Olive", "Open", "Orchard", "Pearl", "Pine", "Quiet", "Raven", "Red", "River", "Rowan",
    "Saffron", "Silver", "Slate", "South", "Spring", "Stone", "Summit", "Swift", "Tall", "Umber", "Upper", "Violet",
    "West", "Willow", "Winter",
];

const SECOND_WORDS: [&str; 64] = [
    "Anchor", "Arch", "Bank", "Bay", "Beacon", "Bell", "Bridge", "Brook", "Cape", "Cliff", "Compass", "Corner",
    "Court", "Cove", "Creek", "Dale", "Dock", "Drift", "Field", "Fjord", "Ford", "Forge", "Gable", "Garden", "Gate",
    "Glen", "Grove", "Hall", "Haven", "Hill", "House", "Isle", "Junction", "Keep", "Knoll", "Lane", "Lantern", "Ledge",
    "Lock", "Market", "Mast", "Moor", "Passage", "Path", "Pier", "Plain", "Point", "Quay", "Reach", "Ridge", "Road",
    "Shore", "Sound", "Spire", "Square", "Station", "Steps", "Tower", "Vale", "Wharf", "Wheel", "Yard", "Yarrow",
    "Zenith",
];

const COUNTRIES: [&str; 48] = [
    "DE", "US", "FR", "GB", "NL", "IT", "ES", "PL", "CH", "SE", "AT", "BE", "CA", "JP", "DK", "IE", "FI", "NO", "PT",
    "CZ", "AU", "IN", "BR", "SG", "KR", "RO", "HU", "GR", "SK", "BG", "HR", "SI", "LT", "LV", "EE", "LU", "NZ", "MX",
    "ZA", "AE", "TR", "IL", "CL", "AR", "IS", "MT", "CY", "LI",
];

const RISKS: [&str; 4] = ["minimal", "limited", "high", "unclassified"];
const TRAININGS: [&str; 3] = ["never", "with_consent", "by_default"];
const SCHEMES: [&str; 6] = ["iso-27001", "soc-2", "iso-9001", "c5", "hds", "pci-dss"];
const REGIONS: [&str; 6] = ["eu-central-1", "eu-west-1", "us-east-1", "eu-north-1", "ap-south-1", "us-west-2"];
const RETENTIONS: [u32; 10] = [0, 1, 3, 7, 14, 30, 60, 90, 180, 365];

/// How many categories there are; each is known by its rank, the most frequent first.
pub const CATEGORIES: usize = TRADES.len() * FACETS.len();

/// Moments between which manifests are published and updated: 2024-01-01 and 2026-11-01, in seconds.
const PUBLISHED_FROM: i64 = 1_704_067_200;
const UPDATED_UNTIL: i64 = 1_793_491_200;

/// Where manifests come from.
#[derive(Clone, Debug)]
pub struct Corpus {
    seed: u64,
    categories: Zipf,
    countries: Zipf,
    verbs: Zipf,
}

/// What one manifest says; everything it is written from.
#[derive(Clone, Debug)]
pub struct Facts {
    number: u64,
    first: usize,
    second: usize,
    /// The rank of its first category.
    pub category: usize,
    other_category: Option<usize>,
    country: usize,
    /// Ranks of its jurisdictions; the most frequent country is 0.
    pub jurisdictions: Vec<usize>,
    actions: Vec<Action>,
    euro_price: Option<Price>,
    local_price: Option<(Price, &'static str)>,
    subscription: Option<u32>,
    /// 95 of 100 calls are faster than this.
    pub latency_p95_ms: u32,
    latency_p99_ms: u32,
    uptime_in_ten_thousandths: u32,
    /// Days for which data is kept.
    pub retention_days: u32,
    risk: usize,
    training: usize,
    certifications: Vec<(usize, usize)>,
    incidents: u32,
    /// Whether its publisher is verified.
    pub verified: bool,
    published: i64,
    /// When it was last changed, in seconds since the epoch.
    pub updated: i64,
}

#[derive(Clone, Debug)]
struct Action {
    verb: usize,
    category: usize,
    effect: usize,
    cost: Price,
}

/// Thousandths of a unit of money.
#[derive(Clone, Copy, Debug)]
struct Price(u32);

impl Corpus {
    /// The corpus of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            categories: Zipf::new(CATEGORIES, 0.9),
            countries: Zipf::new(COUNTRIES.len(), 1.0),
            verbs: Zipf::new(VERBS.len(), 0.6),
        }
    }

    /// What the manifest with this number says.
    pub fn facts(&self, number: u64) -> Facts {
        let mut chance = Chance::seeded(self.seed.rotate_left(32) ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let chance = &mut chance;
        let category = self.categories.draw(chance);
        let country = self.countries.draw(chance);
        let latency_p95_ms = 20 + (chance.below(2_400).min(chance.below(2_400))) as u32;
        let published = PUBLISHED_FROM + chance.below((UPDATED_UNTIL - PUBLISHED_FROM) as usize) as i64;
        let since = (UPDATED_UNTIL - published) as usize;
        Facts {
            number,
            first: chance.below(FIRST_WORDS.len()),
            second: chance.below(SECOND_WORDS.len()),
            category,
            other_category: chance.one_in(3).then(|| self.categories.draw(chance)),
            country,
            jurisdictions: self.jurisdictions(country, chance),
            actions: (0..1 + chance.below(3).min(chance.below(3))).map(|_| self.action(category, chance)).collect(),
            euro_price: (!chance.one_in(9)).then(|| Price::draw(chance)),
            local_price: chance.one_in(4).then(|| (Price::draw(chance), chance.word(&["USD", "GBP", "CHF", "SEK"]))),
            subscription: chance.one_in(3).then(|| 9 + 10 * chance.below(30) as u32),
            latency_p95_ms,
            latency_p99_ms: latency_p95_ms + 10 + chance.below(3 * latency_p95_ms as usize) as u32,
            uptime_in_ten_thousandths: 9_999 - chance.below(500).min(chance.below(500)) as u32,
            retention_days: match chance.one_in(3) {
                true => chance.below(400) as u32,
                false => chance.pick(&RETENTIONS).copied().unwrap_or_default(),
            },
            risk: chance.below(RISKS.len()).min(chance.below(RISKS.len())),
            training: chance.below(TRAININGS.len()).min(chance.below(TRAININGS.len())),
            certifications: (0..chance.below(3))
                .map(|_| (chance.below(SCHEMES.len()), self.countries.draw(chance)))
                .collect(),
            incidents: chance.below(12).saturating_sub(8) as u32,
            verified: !chance.one_in(3),
            published,
            updated: published + chance.below(since.max(1)).max(chance.below(since.max(1))) as i64,
        }
    }

    fn jurisdictions(&self, home: usize, chance: &mut Chance<'_>) -> Vec<usize> {
        let mut all = vec![home];
        for _ in 0..chance.below(4) {
            let country = self.countries.draw(chance);
            if !all.contains(&country) {
                all.push(country);
            }
        }
        all
    }

    fn action(&self, category: usize, chance: &mut Chance<'_>) -> Action {
        let effect = chance.below(SIDE_EFFECTS.len()).min(chance.below(SIDE_EFFECTS.len()));
        Action { verb: self.verbs.draw(chance), category, effect, cost: Price::draw(chance) }
    }

    /// Which part of all manifests has this category first.
    pub fn category_share(&self, rank: usize) -> f64 {
        self.categories.share(rank)
    }

    /// Appends one manifest as a line of compact JSON, without the line's end.
    pub fn write(&self, number: u64, out: &mut String) {
        // Writing to a String never fails.
        let _ = self.facts(number).write(out);
    }

    /// Writes manifests as NDJSON and returns the bytes written.
    pub fn write_file(&self, count: u64, path: &Path) -> io::Result<u64> {
        let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
        let (mut line, mut bytes) = (String::with_capacity(4096), 0);
        for number in 0..count {
            line.clear();
            self.write(number, &mut line);
            line.push('\n');
            file.write_all(line.as_bytes())?;
            bytes += line.len() as u64;
        }
        file.flush()?;
        Ok(bytes)
    }
}

/// The name of the category of a rank, such as `logistics.tracking`.
pub fn category(rank: usize) -> String {
    let (trade, _) = trade(rank);
    format!("{trade}.{}", facet(rank))
}

/// The country of a rank.
pub fn country(rank: usize) -> &'static str {
    at(&COUNTRIES, rank)
}

fn trade(rank: usize) -> (&'static str, &'static str) {
    at(&TRADES, rank % TRADES.len())
}

fn facet(rank: usize) -> &'static str {
    at(&FACETS, rank / TRADES.len())
}

fn at<T: Copy + Default>(list: &[T], position: usize) -> T {
    list.get(position).copied().unwrap_or_default()
}

impl Facts {
    /// Its DID, which is its id.
    pub fn did(&self) -> String {
        format!("did:web:{}", self.host())
    }

    fn host(&self) -> String {
        format!("{}-{}-{}.example", self.first_word(), self.second_word(), self.number).to_lowercase()
    }

    /// The first word of its name.
    pub fn first_word(&self) -> &'static str {
        at(&FIRST_WORDS, self.first)
    }

    /// The second word of its name.
    pub fn second_word(&self) -> &'static str {
        at(&SECOND_WORDS, self.second)
    }

    /// The third word of its name.
    pub fn trade_word(&self) -> &'static str {
        trade(self.category).1
    }

    /// The last digit of its name.
    pub fn last_digit(&self) -> u64 {
        self.number % 10
    }

    /// The id and side effect of its first action.
    pub fn first_action(&self) -> (String, &'static str) {
        let first = |action: &Action| (action.id(), at(&SIDE_EFFECTS, action.effect));
        self.actions.first().map(first).unwrap_or_default()
    }

    /// Its risk class.
    pub fn risk_class(&self) -> &'static str {
        at(&RISKS, self.risk)
    }

    /// Whether it learns from the data it is given.
    pub fn training(&self) -> &'static str {
        at(&TRAININGS, self.training)
    }

    /// Whether it has a price in EUR for each call; without one it has no cost under a budget in EUR.
    pub fn has_euro_price(&self) -> bool {
        self.euro_price.is_some()
    }

    /// Its promised uptime, as it is written.
    pub fn uptime(&self) -> String {
        format!("0.{:04}", self.uptime_in_ten_thousandths).trim_end_matches('0').to_owned()
    }

    /// The name of its first category.
    pub fn category_name(&self) -> String {
        category(self.category)
    }

    /// All its categories, as they are written.
    pub fn category_names(&self) -> Vec<String> {
        let named = [Some(self.category), self.other_category].into_iter().flatten().map(category);
        std::iter::once(trade(self.category).0.to_owned()).chain(named).collect()
    }

    /// The ids of its actions.
    pub fn action_ids(&self) -> Vec<String> {
        self.actions.iter().map(Action::id).collect()
    }

    /// The side effects of its actions.
    pub fn action_effects(&self) -> Vec<&'static str> {
        self.actions.iter().map(|action| at(&SIDE_EFFECTS, action.effect)).collect()
    }

    /// Its incidents of the last 90 days.
    pub fn incidents(&self) -> u32 {
        self.incidents
    }

    /// Its promised uptime, in ten thousandths.
    pub fn uptime_in_ten_thousandths(&self) -> u32 {
        self.uptime_in_ten_thousandths
    }

    /// Its price in EUR for each call, as it is written.
    pub fn first_price(&self) -> Option<String> {
        self.euro_price.map(|price| price.to_string())
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let (host, country) = (self.host(), country(self.country));
        let (trade, word) = trade(self.category);
        let (first, second, number) = (self.first_word(), self.second_word(), self.number);
        write!(
            out,
            r#"{{"oap_version":"1.0","tool":{{"id":"{trade}-{number}","did":"did:web:{host}","name":"{first} {second} {word} {number}","version":"{}.{}.0","publisher":{{"legal_name":"{first} {second} Ltd","registry":{{"id":"{country}-{}","country":"{country}"}}}},"categories":["{trade}","{}""#,
            1 + number % 4,
            number % 13,
            100_000 + number * 7,
            category(self.category),
        )?;
        if let Some(other) = self.other_category {
            write!(out, r#","{}""#, category(other))?;
        }
        write!(
            out,
            r#"],"description_for_agents":"{} for {trade}: send the order, receive a receipt."}},"endpoints":{{"invoke":"https://{host}/oap/invoke"}},"auth":[{{"method":"oap_trust_token"}}],"actions":["#,
            facet(self.category),
        )?;
        separated(out, &self.actions, Action::write)?;
        out.push_str(r#"],"pricing":{"models":["#);
        self.write_prices(out)?;
        write!(
            out,
            r#"]}},"sla":{{"uptime_target":{},"latency_p95_ms":{},"latency_p99_ms":{},"regions":["{}"]}},"trust":{{"publisher_verified":{},"gdpr_compliant":{},"incidents_last_90d":{},"certifications":["#,
            self.uptime(),
            self.latency_p95_ms,
            self.latency_p99_ms,
            at(&REGIONS, self.country % REGIONS.len()),
            self.verified,
            self.training != 2,
            self.incidents,
        )?;
        separated(out, &self.certifications, |(scheme, country), out| {
            write!(out, r#"{{"scheme":"{}","country":"{}"}}"#, at(&SCHEMES, *scheme), self::country(*country))
        })?;
        write!(
            out,
            r#"]}},"data_policy":{{"stores_principal_data":{},"retention_days":{},"training_on_principal_data":"{}"}},"risk_class":"{}","jurisdictions":["#,
            self.retention_days > 0,
            self.retention_days,
            self.training(),
            self.risk_class(),
        )?;
        separated(out, &self.jurisdictions, |rank, out| write!(out, r#""{}""#, self::country(*rank)))?;
        write!(
            out,
            r#"],"published_at":"{}","updated_at":"{}"}}"#,
            Instant::from_unix(self.published, 0),
            Instant::from_unix(self.updated, 0),
        )
    }

    fn write_prices(&self, out: &mut String) -> std::fmt::Result {
        let mut prices = Vec::new();
        if let Some(price) = self.euro_price {
            prices.push(format!(r#"{{"type":"per_call","amount":"{price}","currency":"EUR"}}"#));
        }
        if let Some((price, currency)) = &self.local_price {
            prices.push(format!(r#"{{"type":"per_call","amount":"{price}","currency":"{currency}"}}"#));
        }
        if let Some(amount) = self.subscription {
            prices
                .push(format!(r#"{{"type":"subscription","amount":"{amount}.00","currency":"EUR","period":"month"}}"#));
        }
        separated(out, &prices, |price, out| write!(out, "{price}"))
    }
}

impl Action {
    fn id(&self) -> String {
        format!("{}_{}_{}", at(&VERBS, self.verb), trade(self.category).0, facet(self.category))
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let (id, effect) = (self.id(), at(&SIDE_EFFECTS, self.effect));
        write!(
            out,
            r#"{{"id":"{id}","version":"1.{}.0","summary":"{} of {} in {}","side_effects":"{effect}","idempotent":{},"cost":{{"amount":"{}","currency":"EUR"}}}}"#,
            self.verb,
            at(&VERBS, self.verb),
            facet(self.category),
            trade(self.category).0,
            self.effect == 0,
            self.cost,
        )
    }
}

fn separated<T>(
    out: &mut String,
    items: &[T],
    mut write: impl FnMut(&T, &mut String) -> std::fmt::Result,
) -> std::fmt::Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write(item, out)?;
    }
    Ok(())
}

impl Price {
    /// Cheap calls are common, dear ones rare.
    fn draw(chance: &mut Chance<'_>) -> Self {
        let (from, to) = match chance.below(20) {
            0..3 => (1, 10),
            3..11 => (10, 100),
            11..18 => (100, 1_000),
            _ => (1_000, 5_000),
        };
        Self(from + chance.below(to - from as usize) as u32)
    }
}

impl std::fmt::Display for Price {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// Ranks of which the first is the most frequent, each later one rarer.
#[derive(Clone, Debug)]
struct Zipf {
    /// For each rank, the share of all draws up to and with it, in units of 2^-32.
    bounds: Vec<u64>,
}

impl Zipf {
    fn new(ranks: usize, exponent: f64) -> Self {
        let weight = |rank: usize| ((rank + 1) as f64).powf(-exponent);
        let total: f64 = (0..ranks).map(weight).sum();
        let mut sum = 0.0;
        let mut bound = |rank| {
            sum += weight(rank);
            (sum / total * 4_294_967_296.0) as u64
        };
        Self { bounds: (0..ranks).map(&mut bound).collect() }
    }

    fn share(&self, rank: usize) -> f64 {
        let below = rank.checked_sub(1).map_or(0, |below| at(&self.bounds, below));
        at(&self.bounds, rank).saturating_sub(below) as f64 / 4_294_967_296.0
    }

    fn draw(&self, chance: &mut Chance<'_>) -> usize {
        let drawn = chance.bits() >> 32;
        self.bounds.partition_point(|bound| *bound <= drawn).min(self.bounds.len().saturating_sub(1))
    }
}
