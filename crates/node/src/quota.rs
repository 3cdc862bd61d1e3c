//! How much of a node one issuer may use, counted where a signature holds (decisions/0060).
//!
//! | Bound | Whose |
//! |---|---|
//! | messages in a second | an issuer's; five times as many for all issuers of one domain |
//! | names in a minute that the node has not heard lately | a source's: a did:key costs nothing to make |
//! | questions in a day that differ | an owner's: a domain's, or a did:key's (decisions/0064) |
//!
//! INVARIANT: nobody can use up what is somebody else's.
//! INVARIANT: whether a bound is passed depends on what was asked, and never on what is stored.

use crate::outbound::registrable;
use crate::refusal::{Class, Refusal};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use trust::{Did, Digest};
use url::Url;

/// Issuers, domains and sources that are remembered before those who have been quiet are forgotten.
const REMEMBERED_MAX: usize = 65_536;
/// How many issuers' quotas all issuers of one domain have together.
const DOMAIN_SHARE: u32 = 5;
/// New names of one source in a minute.
pub(crate) const NEW_NAMES_PER_MINUTE: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);
/// How long a name is known after it was last heard, in milliseconds.
const KNOWN_MS: i64 = 24 * 3_600_000;
/// Owners whose questions of a day are told apart; those who come later share one account.
const OWNERS_MAX: usize = 8_192;
const DAY_MS: i64 = 24 * 3_600_000;

/// What an issuer's quota is used for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Something that the issuer signed for this, once.
    Message,
    /// Whoever has an intent can ask why; so it must not hold up its issuer's next one.
    Explanation,
}

/// What issuers, and the domains they live in, have left of their second; and which names are new.
#[derive(Debug)]
pub(crate) struct Quotas {
    issuers: DefaultKeyedRateLimiter<String>,
    domains: DefaultKeyedRateLimiter<String>,
    newcomers: DefaultKeyedRateLimiter<IpAddr>,
    known: Mutex<HashMap<String, i64>>,
}

impl Quotas {
    pub(crate) fn new(rate: NonZeroU32) -> Self {
        let domain = rate.saturating_mul(NonZeroU32::MIN.saturating_add(DOMAIN_SHARE - 1));
        Self {
            issuers: RateLimiter::keyed(Quota::per_second(rate)),
            domains: RateLimiter::keyed(Quota::per_second(domain)),
            newcomers: RateLimiter::keyed(Quota::per_minute(NEW_NAMES_PER_MINUTE)),
            known: Mutex::default(),
        }
    }

    /// Counts a message of an issuer that came from a source, where that is known.
    pub(crate) fn charge(
        &self,
        issuer: &Did,
        purpose: Purpose,
        source: Option<IpAddr>,
        now: i64,
    ) -> Result<(), Refusal> {
        let mark = match purpose {
            Purpose::Message => "",
            Purpose::Explanation => " why",
        };
        let has_left = |quota: &DefaultKeyedRateLimiter<String>, name: &str| {
            if quota.len() > REMEMBERED_MAX {
                quota.retain_recent();
            }
            quota.check_key(&format!("{name}{mark}")).is_ok()
        };
        let host = host(issuer);
        let domain = || host.as_deref().is_none_or(|host| has_left(&self.domains, registrable(host)));
        if !has_left(&self.issuers, issuer.as_str()) || !domain() {
            let detail = "this issuer sends more than the node answers; wait";
            return Err(Refusal::new(Class::RateLimited, "too_many_requests", detail).retry_after(1_000));
        }
        match source {
            Some(source) if host.is_none() => self.greet(issuer, household(source), now),
            _ => Ok(()),
        }
    }

    /// Lets a name in that costs nothing to make, while its source has not brought too many.
    fn greet(&self, issuer: &Did, source: IpAddr, now: i64) -> Result<(), Refusal> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |heard: &i64| now - *heard < KNOWN_MS;
        if !known.get(issuer.as_str()).is_some_and(is_known) {
            if self.newcomers.len() > REMEMBERED_MAX {
                self.newcomers.retain_recent();
            }
            if self.newcomers.check_key(&source).is_err() {
                let detail = "this source comes with more new names than the node takes; use the ones that it knows";
                let most = u64::from(NEW_NAMES_PER_MINUTE.get());
                let refusal = Refusal::new(Class::RateLimited, "too_many_new_names", detail);
                return Err(refusal.limited("new_names_per_minute", most, most + 1).retry_after(60_000));
            }
            if known.len() >= REMEMBERED_MAX {
                known.retain(|_, heard| is_known(heard));
            }
            if known.len() >= REMEMBERED_MAX {
                // As many as there can be came within a day: they are all new again.
                known.clear();
            }
        }
        known.insert(issuer.as_str().to_owned(), now);
        Ok(())
    }
}

/// The first 64 bits of an IPv6 address: whoever has one address has the rest of them, too.
pub(crate) fn household(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

/// The host of a name on the web.
fn host(did: &Did) -> Option<String> {
    let url = did.document_url().and_then(|url| Url::parse(&url).ok());
    url.as_ref().and_then(Url::host_str).map(str::to_owned)
}

/// RFC 0007 6.1: which questions each owner has asked today. Many that differ a little tell more than one answer means to.
#[derive(Debug)]
pub(crate) struct Ledger {
    most: NonZeroU32,
    today: Mutex<Day>,
}

#[derive(Debug, Default)]
struct Day {
    number: i64,
    asked: HashMap<String, HashSet<u64>>,
}

impl Ledger {
    pub(crate) fn new(most: NonZeroU32) -> Self {
        Self { most, today: Mutex::default() }
    }

    /// Counts a question, unless it was asked today already.
    pub(crate) fn charge(&self, issuer: &Did, question: &[u8], now: i64) -> Result<(), Refusal> {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now.div_euclid(DAY_MS);
        if today.number != number {
            *today = Day { number, asked: HashMap::new() };
        }
        let owner = host(issuer).map_or_else(|| issuer.as_str().to_owned(), |host| registrable(&host).to_owned());
        let owner =
            if today.asked.contains_key(&owner) || today.asked.len() < OWNERS_MAX { owner } else { String::new() };
        let asked = today.asked.entry(owner).or_default();
        let digest = Digest::of(question);
        let short = digest.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        if asked.contains(&short) {
            return Ok(());
        }
        let most = u64::from(self.most.get());
        if asked.len() as u64 >= most {
            let detail = "as many different questions were asked in this name as the operator answers in a day";
            let refusal = Refusal::new(Class::RateLimited, "budget_exhausted", detail);
            let wait = (number + 1) * DAY_MS - now;
            let refusal = refusal.limited("questions_per_day", most, most + 1);
            return Err(refusal.retry_after(u64::try_from(wait).unwrap_or_default()));
        }
        asked.insert(short);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(text: &str) -> Did {
        Did::parse(text).unwrap()
    }

    fn key(number: u32) -> Did {
        let seed = *Digest::of(&number.to_be_bytes()).as_bytes();
        did(trust::SigningKey::from_seed(seed).did_key().as_str())
    }

    #[test]
    fn issuers_of_one_domain_share_what_five_have() {
        let quotas = Quotas::new(NonZeroU32::new(10).unwrap());
        let charged = |dids: &mut dyn Iterator<Item = String>| {
            dids.filter(|name| quotas.charge(&did(name), Purpose::Message, None, 0).is_ok()).count()
        };
        assert_eq!(charged(&mut (0..100).map(|_| "did:web:a.example.com".to_owned())), 10);
        assert_eq!(charged(&mut (0..100).map(|n| format!("did:web:h{n}.example.com"))), 40);
        assert_eq!(charged(&mut (0..100).map(|n| format!("did:web:h.example{n}.com"))), 100);
    }

    #[test]
    fn a_source_brings_so_many_new_names_and_known_ones_go_on() {
        let quotas = Quotas::new(NonZeroU32::new(1_000).unwrap());
        let greeted = |source: &str, numbers: std::ops::Range<u32>, now: i64| {
            let source = Some(source.parse().unwrap());
            numbers.filter(|n| quotas.charge(&key(*n), Purpose::Message, source, now).is_ok()).count()
        };
        assert_eq!(greeted("192.0.2.1", 0..100, 0), 30);
        assert_eq!(greeted("192.0.2.1", 0..30, 0), 30, "the first thirty are known");
        assert_eq!(greeted("192.0.2.2", 100..110, 0), 10, "another source has its own");
        assert_eq!(greeted("2001:db8::1", 200..220, 0), 20);
        assert_eq!(greeted("2001:db8::2", 220..240, 0), 10, "a household of IPv6 is one source");
        assert_eq!(greeted("192.0.2.2", 0..30, KNOWN_MS - 1), 30, "known wherever they come from");
        let refusal = quotas.charge(&key(500), Purpose::Message, Some([192, 0, 2, 1].into()), 0).unwrap_err();
        assert_eq!((refusal.code, refusal.retry_after_ms), ("too_many_new_names", Some(60_000)));
        assert!(quotas.charge(&did("did:web:new.example"), Purpose::Message, Some([192, 0, 2, 1].into()), 0).is_ok());
        assert!(
            quotas.charge(&key(501), Purpose::Message, None, 0).is_ok(),
            "a source that is not known bounds nothing"
        );
    }

    /// RFC 0007 5.2: a thousand questions that differ a little, asked to take their answers apart.
    #[test]
    fn questions_that_differ_are_counted_by_owner_and_day() {
        let ledger = Ledger::new(NonZeroU32::new(100).unwrap());
        let asked = |issuer: &str, now: i64| {
            let questions = (0..1_000).map(|number| format!("lt {number}"));
            questions.filter(|question| ledger.charge(&did(issuer), question.as_bytes(), now).is_ok()).count()
        };
        assert_eq!(asked("did:web:a.example.com", 0), 100);
        assert_eq!(asked("did:web:a.example.com", DAY_MS - 1), 100, "what was asked may be asked again");
        assert_eq!(asked("did:web:b.example.com", 5), 100, "the questions of its owner, and no others");
        let refusal = ledger.charge(&did("did:web:b.example.com"), b"another", DAY_MS - 5_000).unwrap_err();
        let limit = refusal.limit.unwrap();
        assert_eq!((refusal.code, refusal.retry_after_ms, limit.max), ("budget_exhausted", Some(5_000), 100));
        assert!(ledger.charge(&did("did:web:other.example"), b"another", 5).is_ok());
        assert!(ledger.charge(&did("did:web:b.example.com"), b"another", DAY_MS).is_ok(), "a new day");
    }

    #[test]
    fn owners_beyond_those_that_are_told_apart_share_an_account() {
        let ledger = Ledger::new(NonZeroU32::new(2).unwrap());
        for number in 0..OWNERS_MAX {
            let name = format!("did:web:n{number}.org");
            assert!(ledger.charge(&did(&name), b"q", 0).is_ok());
        }
        let answered = (0..10).filter(|number| {
            let name = format!("did:web:late{number}.org");
            ledger.charge(&did(&name), name.as_bytes(), 0).is_ok()
        });
        assert_eq!(answered.count(), 2);
    }
}
