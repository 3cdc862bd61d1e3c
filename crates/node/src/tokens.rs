//! RFC 0004 §3.2: how often, and for how long, the tokens of a delegation chain have been used at this node.
//!
//! Whoever asks a node with a chain invokes its one action, so a question counts once for every token above it: two
//! delegates of one principal share what it gave. A token lasts ten minutes at most, and so does what is remembered of
//! it; a restart forgets it (decisions/0115).

use crate::refusal::{Class, Error, Refusal};
use json::Pointer;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use trust::{Delegation, Token};

/// Tokens whose use is remembered at a time.
pub(crate) const TOKENS_MAX: usize = 65_536;

/// What is known of the tokens that bound their use.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    used: Mutex<HashMap<(String, String), Used>>,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    times: u64,
    /// The first use, in milliseconds since 1970.
    since: i64,
    /// The end of the token, in seconds since 1970.
    expires: i64,
}

impl Tokens {
    /// Counts one use of a chain; a token that allows no further one refuses it, and then none of them is counted.
    pub(crate) fn spend(&self, chain: &Delegation, now: i64) -> Result<(), Error> {
        let bounded = |token: &&Token| token.max_invocations.is_some() || token.max_wall_time_seconds.is_some();
        let bounded: Vec<(usize, &Token)> =
            chain.tokens.iter().enumerate().filter(|(_, token)| bounded(token)).collect();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() + bounded.len() > TOKENS_MAX {
            used.retain(|_, used| used.expires.saturating_mul(1_000) > now);
            if used.len() + bounded.len() > TOKENS_MAX {
                return Err(Refusal::overloaded().into());
            }
        }
        for (position, token) in &bounded {
            let known = used.get(&key(token)).copied();
            check(token, known, now).map_err(|refusal| refusal.at(place(*position)))?;
        }
        for (_, token) in bounded {
            let fresh = Used { times: 0, since: now, expires: token.expires };
            used.entry(key(token)).or_insert(fresh).times += 1;
        }
        Ok(())
    }
}

fn key(token: &Token) -> (String, String) {
    (token.issuer.to_string(), token.name.clone())
}

fn check(token: &Token, known: Option<Used>, now: i64) -> Result<(), Refusal> {
    let refuse = |detail, name, max: u64, got| {
        Refusal::new(Class::PolicyBlock, "delegation_scope_exceeded", detail).limited(name, max, got)
    };
    let times = known.map_or(0, |used| used.times) + 1;
    if let Some(most) = token.max_invocations.filter(|most| times > *most) {
        let detail = "the token has been used as often as `max_invocations` allows; ask for a new one";
        return Err(refuse(detail, "scope.max_invocations", most, times));
    }
    let lasted = known.map_or(0, |used| u64::try_from(now.saturating_sub(used.since)).unwrap_or_default() / 1_000);
    if let Some(most) = token.max_wall_time_seconds.filter(|most| lasted > *most) {
        let detail = "the token has been used for as long as `max_wall_time_seconds` allows; ask for a new one";
        return Err(refuse(detail, "scope.max_wall_time_seconds", most, lasted));
    }
    Ok(())
}

fn place(position: usize) -> Pointer {
    Pointer::root().child("delegation_chain").child(position).child("jwt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use trust::Did;

    fn token(name: &str, times: Option<u64>, seconds: Option<u64>) -> Token {
        let issuer = Did::parse("did:web:principal.example").unwrap();
        Token { issuer, name: name.to_owned(), max_invocations: times, max_wall_time_seconds: seconds, expires: 600 }
    }

    fn chain(tokens: Vec<Token>) -> Delegation {
        let did = |name: &str| Did::parse(&format!("did:web:{name}.example")).unwrap();
        let scope = trust::Scope::default();
        Delegation { principal: did("a"), holder: did("b"), payer: did("a"), scope, expires: 600, tokens }
    }

    fn refused(tokens: &Tokens, chain: &Delegation, now: i64) -> Option<(String, String)> {
        match tokens.spend(chain, now) {
            Ok(()) => None,
            Err(Error::Refusal(refusal)) => {
                assert_eq!(refusal.code, "delegation_scope_exceeded");
                Some((refusal.at.as_str().to_owned(), refusal.limit.unwrap().name.clone()))
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_token_is_used_as_often_as_it_says() {
        let tokens = Tokens::default();
        let once = chain(vec![token("once", Some(2), None)]);
        assert_eq!((refused(&tokens, &once, 0), refused(&tokens, &once, 0)), (None, None));
        let expected = Some(("/delegation_chain/0/jwt".to_owned(), "scope.max_invocations".to_owned()));
        assert_eq!(refused(&tokens, &once, 0), expected);
        assert_eq!(refused(&tokens, &chain(vec![token("never", Some(0), None)]), 0), expected);
        assert_eq!(refused(&tokens, &chain(vec![token("other", Some(1), None)]), 0), None);
    }

    #[test]
    fn two_delegates_share_what_the_token_above_them_allows() {
        let tokens = Tokens::default();
        let of = |name: &str| chain(vec![token("above", Some(3), None), token(name, Some(2), None)]);
        assert_eq!((refused(&tokens, &of("left"), 0), refused(&tokens, &of("left"), 0)), (None, None));
        // What the lower token refuses is not counted above it.
        assert_eq!(refused(&tokens, &of("left"), 0).unwrap().0, "/delegation_chain/1/jwt");
        assert_eq!(refused(&tokens, &of("right"), 0), None);
        assert_eq!(refused(&tokens, &of("right"), 0).unwrap().0, "/delegation_chain/0/jwt");
    }

    #[test]
    fn a_token_lasts_from_its_first_use_for_as_long_as_it_says() {
        let tokens = Tokens::default();
        let minute = chain(vec![token("minute", None, Some(60))]);
        assert_eq!((refused(&tokens, &minute, 1_000), refused(&tokens, &minute, 61_999)), (None, None));
        assert_eq!(refused(&tokens, &minute, 62_000).unwrap().1, "scope.max_wall_time_seconds");
    }

    #[test]
    fn what_is_over_makes_room_and_no_more_is_remembered_than_fits() {
        let tokens = Tokens::default();
        for number in 0..TOKENS_MAX {
            tokens.spend(&chain(vec![token(&number.to_string(), Some(1), None)]), 0).unwrap();
        }
        let one_more = chain(vec![token("one more", Some(1), None)]);
        let Err(Error::Refusal(refusal)) = tokens.spend(&one_more, 0) else { panic!("there is room") };
        assert_eq!(refusal.code, "overloaded");
        tokens.spend(&one_more, 600_001).unwrap();
        assert_eq!(tokens.used.lock().unwrap().len(), 1);
    }
}
