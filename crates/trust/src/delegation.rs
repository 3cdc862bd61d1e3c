//! RFC 0020 §3.6 delegation, RFC 0004 §3.2, RFC 0004 §3.4, RFC 0004 §3.5: who acts for whom, and how far.
//!
//! A chain is a list of tokens, the principal's first. Each is a JWT that the one above signed for the one below. A
//! chain holds when every link does: the signature, the audience, the time, the depth, and a scope that lies inside the
//! scope above it. `docs/decisions/0050` has the readings.
//!
//! INVARIANT: [`Delegation`] has no other constructor than [`Chain::verify`].

use crate::{Algorithm, Did, DidDocument, Problem, SigningKey, encoding};
use json::{Document, Exceeded, Limits, Node, Pointer, Value, json};
use std::collections::BTreeSet;

/// Links of a chain, which is also the greatest depth that a token may allow (RFC 0004 §3.5).
pub const DELEGATION_LINKS_MAX: usize = 5;
/// Seconds from the issue of a token to its end (RFC 0004 §5).
pub const DELEGATION_SECONDS_MAX: i64 = 600;
/// Seconds by which the clock of whoever issued a token may be ahead of ours.
const SKEW_SECONDS: i64 = 60;
/// Entries of a list in a scope.
const LIST_MAX: usize = 256;

/// Tokens that were read and that nobody has checked yet.
#[derive(Debug)]
pub struct Chain {
    links: Vec<Link>,
}

/// What a chain that holds says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// Whose authority it is.
    pub principal: Did,
    /// Who acts with it.
    pub holder: Did,
    /// Who pays what the holder spends: the one above, and so on upwards, unless a token says otherwise.
    pub payer: Did,
    /// How far the authority of the holder reaches.
    pub scope: Scope,
    /// Until when it lasts, in seconds since 1970.
    pub expires: i64,
    /// The tokens, the principal's first.
    pub tokens: Vec<Token>,
}

/// A token of a chain that holds, and how much it may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Who gave it.
    pub issuer: Did,
    /// Its `jti`, which is its name among those of its issuer.
    pub name: String,
    /// How often it may be used; no bound when absent.
    pub max_invocations: Option<u64>,
    /// For how long it may be used, in seconds; no bound when absent.
    pub max_wall_time_seconds: Option<u64>,
    /// Its end, in seconds since 1970.
    pub expires: i64,
}

/// What a token allows. What is `None` is not bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The actions that may be asked for.
    pub actions: BTreeSet<String>,
    /// How often.
    pub max_invocations: Option<u64>,
    /// For how much in all, in EUR, as written.
    pub max_cost_eur: Option<String>,
    /// With which kinds of data.
    pub data_categories: Option<BTreeSet<String>>,
    /// For how long, in seconds.
    pub max_wall_time_seconds: Option<u64>,
}

/// Why a chain is refused, and at which of its tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at `{at}`")]
pub struct ChainError {
    /// The place of the token in the document.
    pub at: Pointer,
    /// What is wrong with it.
    pub problem: ChainProblem,
    /// The limit that was passed, if one was.
    pub limit: Option<Exceeded>,
}

impl ChainError {
    /// The stable name for programs; the place and the message carry the detail.
    pub fn code(&self) -> &'static str {
        match self.problem {
            ChainProblem::Form(_)
            | ChainProblem::Signature(_)
            | ChainProblem::Audience
            | ChainProblem::Expired
            | ChainProblem::NotYetValid
            | ChainProblem::TooLong
            | ChainProblem::TooManyLinks
            | ChainProblem::Depth
            | ChainProblem::Broken
            | ChainProblem::Cycle
            | ChainProblem::Wider(_) => "delegation_invalid",
        }
    }
}

/// What can be wrong with a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainProblem {
    /// It is no delegation token.
    #[error("this is no delegation token: {0}")]
    Form(&'static str),
    /// Its signature does not hold.
    #[error("the token is not signed by its `iss`: {0}")]
    Signature(Problem),
    /// It was made for somebody else.
    #[error("the token is not for this node; its `aud` names the node's DID")]
    Audience,
    /// Its time is over.
    #[error("the token has expired; ask for a new one")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet; check `iat` and `nbf`")]
    NotYetValid,
    /// It lasts longer than a token may.
    #[error("the token lasts too long; `exp` is at most 600 seconds after `iat`")]
    TooLong,
    /// There are more links than any chain may have.
    #[error("the chain has too many links")]
    TooManyLinks,
    /// The depth does not fit.
    #[error(
        "the depth does not fit; `delegation_depth` counts from 1 along the chain and stays within \
         `max_delegation_depth`, which never grows and is at most 5"
    )]
    Depth,
    /// The one who signed is not the one who got the authority.
    #[error("the chain is broken; each `iss` is the `sub` of the token before")]
    Broken,
    /// The authority comes back to somebody who had it.
    #[error("the chain runs in a circle; each party and each `jti` stands in it once")]
    Cycle,
    /// More is given than there was.
    #[error("the token gives more than the one before it: `{0}`")]
    Wider(&'static str),
}

/// One token.
#[derive(Debug)]
struct Link {
    at: Pointer,
    /// What was signed: header and claims, as they came.
    signed: String,
    signature: Vec<u8>,
    algorithm: Algorithm,
    kid: Option<String>,
    issuer: Did,
    subject: Did,
    audience: Vec<String>,
    issued_at: i64,
    not_before: Option<i64>,
    expires: i64,
    name: String,
    depth: u64,
    max_depth: u64,
    scope: Scope,
    pays_itself: bool,
}

impl Chain {
    /// Reads the member `delegation_chain` of a document, which stands at `at`.
    pub fn read(list: Node<'_>, at: &Pointer) -> Result<Self, ChainError> {
        if list.len() > DELEGATION_LINKS_MAX {
            let limit = limit("delegation.links", DELEGATION_LINKS_MAX as u64, list.len() as u64);
            return Err(ChainError { at: at.clone(), problem: ChainProblem::TooManyLinks, limit });
        }
        let links = list.elements().enumerate().map(|(position, token)| Link::read(token, at.child(position)));
        Ok(Self { links: links.collect::<Result<_, _>>()? })
    }

    /// Whose keys [`Chain::verify`] needs, in the order of the links.
    pub fn issuers(&self) -> impl Iterator<Item = &Did> {
        self.links.iter().map(|link| &link.issuer)
    }

    /// Checks every link; `keys` are those of [`Chain::issuers`], and `now` is in seconds since 1970.
    ///
    /// `None` for a chain without links, which gives nothing to anybody.
    pub fn verify<K: AsRef<DidDocument>>(
        self,
        keys: &[K],
        audience: &Did,
        now: i64,
    ) -> Result<Option<Delegation>, ChainError> {
        for (position, link) in self.links.iter().enumerate() {
            link.check_alone(position, audience, now)?;
        }
        for pair in self.links.windows(2) {
            if let [above, below] = pair {
                below.check_beneath(above)?;
            }
        }
        self.check_circle()?;
        for (position, link) in self.links.iter().enumerate() {
            link.check_signature(keys.get(position).map(AsRef::as_ref))?;
        }
        let (Some(first), Some(last)) = (self.links.first(), self.links.last()) else { return Ok(None) };
        Ok(Some(Delegation {
            principal: first.issuer.clone(),
            holder: last.subject.clone(),
            payer: self.payer(last).clone(),
            scope: last.scope.clone(),
            expires: last.expires,
            tokens: self.links.iter().map(Link::token).collect(),
        }))
    }

    /// Costs go up to whoever gave the authority, as long as each token lets them (RFC 0004 §3.4).
    fn payer<'a>(&'a self, last: &'a Link) -> &'a Did {
        let above = self.links.iter().rev().take_while(|link| !link.pays_itself).last();
        above.map_or(&last.subject, |link| &link.issuer)
    }

    fn check_circle(&self) -> Result<(), ChainError> {
        let (mut parties, mut names) = (BTreeSet::new(), BTreeSet::new());
        parties.extend(self.links.first().map(|link| link.issuer.as_str()));
        for link in &self.links {
            if !parties.insert(link.subject.as_str()) || !names.insert(link.name.as_str()) {
                return Err(link.refuse(ChainProblem::Cycle));
            }
        }
        Ok(())
    }
}

impl Link {
    fn read(token: Node<'_>, at: Pointer) -> Result<Self, ChainError> {
        let at = at.child("jwt");
        let wrong = |what| ChainError { at: at.clone(), problem: ChainProblem::Form(what), limit: None };
        let token = token.get("jwt").and_then(Node::as_str).ok_or_else(|| wrong("the member `jwt` is a text"))?;
        let (signed, signature) = token.rsplit_once('.').ok_or_else(|| wrong("a JWT has three parts"))?;
        let (header, claims) = signed.split_once('.').ok_or_else(|| wrong("a JWT has three parts"))?;
        let part = |text: &str| {
            let bytes = encoding::decode_url(text)?;
            Document::parse(&bytes, &Limits::INTENT).ok().filter(|part| part.root().is_object())
        };
        let unreadable = || wrong("header and claims are JSON objects in base64url without padding");
        let (header, claims) = (part(header).ok_or_else(unreadable)?, part(claims).ok_or_else(unreadable)?);
        let signature = encoding::decode_url(signature).ok_or_else(|| wrong("the signature is base64url"))?;
        let (algorithm, kid) = read_header(header.root()).map_err(wrong)?;
        let claims = Claims(claims.root());
        let did = |name, what| Did::parse(claims.text(name).unwrap_or_default()).map_err(|_| wrong(what));
        Ok(Self {
            signed: signed.to_owned(),
            signature,
            algorithm,
            kid,
            issuer: did("iss", "`iss` is the DID of whoever delegates")?,
            subject: did("sub", "`sub` is the DID of whoever acts")?,
            audience: claims.audience().ok_or_else(|| wrong("`aud` is a DID or a list of them"))?,
            issued_at: claims.seconds("iat").ok_or_else(|| wrong("`iat` is a number of seconds"))?,
            not_before: claims.optional("nbf", Claims::seconds).map_err(|()| wrong("`nbf` is a number of seconds"))?,
            expires: claims.seconds("exp").ok_or_else(|| wrong("`exp` is a number of seconds"))?,
            name: claims.text("jti").filter(|name| !name.is_empty()).ok_or_else(|| wrong("`jti` is a name"))?.into(),
            depth: claims.count("delegation_depth").ok_or_else(|| wrong("`delegation_depth` is a whole number"))?,
            max_depth: claims
                .count("max_delegation_depth")
                .ok_or_else(|| wrong("`max_delegation_depth` is a whole number"))?,
            scope: claims.0.get("scope").ok_or("`scope` is missing").and_then(Scope::read).map_err(wrong)?,
            pays_itself: match claims.0.get("billing").map(Node::as_str) {
                None | Some(Some("parent")) => false,
                Some(Some("sub_agent")) => true,
                Some(_) => return Err(wrong("`billing` is `parent` or `sub_agent`")),
            },
            at,
        })
    }

    fn token(&self) -> Token {
        Token {
            issuer: self.issuer.clone(),
            name: self.name.clone(),
            max_invocations: self.scope.max_invocations,
            max_wall_time_seconds: self.scope.max_wall_time_seconds,
            expires: self.expires,
        }
    }

    fn refuse(&self, problem: ChainProblem) -> ChainError {
        ChainError { at: self.at.clone(), problem, limit: None }
    }

    /// What a token must say, whatever stands above it.
    fn check_alone(&self, position: usize, audience: &Did, now: i64) -> Result<(), ChainError> {
        if !self.audience.iter().any(|named| named == audience.as_str()) {
            return Err(self.refuse(ChainProblem::Audience));
        }
        if self.issued_at > now + SKEW_SECONDS || self.not_before.is_some_and(|from| from > now + SKEW_SECONDS) {
            return Err(self.refuse(ChainProblem::NotYetValid));
        }
        if now >= self.expires || self.expires <= self.issued_at {
            return Err(self.refuse(ChainProblem::Expired));
        }
        let lasts = self.expires - self.issued_at;
        if lasts > DELEGATION_SECONDS_MAX {
            let limit = limit("delegation.seconds", DELEGATION_SECONDS_MAX.unsigned_abs(), lasts.unsigned_abs());
            return Err(ChainError { limit, ..self.refuse(ChainProblem::TooLong) });
        }
        let deepest = DELEGATION_LINKS_MAX as u64;
        if self.depth != position as u64 + 1 || self.depth > self.max_depth || self.max_depth > deepest {
            let limit = limit("delegation.depth", self.max_depth.min(deepest), self.depth.max(self.max_depth));
            return Err(ChainError { limit, ..self.refuse(ChainProblem::Depth) });
        }
        Ok(())
    }

    /// Nobody gives more than he has.
    fn check_beneath(&self, above: &Self) -> Result<(), ChainError> {
        if self.issuer != above.subject {
            return Err(self.refuse(ChainProblem::Broken));
        }
        if self.max_depth > above.max_depth {
            return Err(self.refuse(ChainProblem::Depth));
        }
        let later = (self.expires > above.expires).then_some("exp");
        match later.or_else(|| self.scope.wider_than(&above.scope)) {
            Some(what) => Err(self.refuse(ChainProblem::Wider(what))),
            None => Ok(()),
        }
    }

    fn check_signature(&self, keys: Option<&DidDocument>) -> Result<(), ChainError> {
        let refuse = |problem| self.refuse(ChainProblem::Signature(problem));
        let keys = keys.filter(|keys| *keys.did() == self.issuer).ok_or_else(|| refuse(Problem::KeyNotFound))?;
        let key = keys.signing_key(self.kid.as_deref()).map_err(refuse)?;
        if key.algorithm() != self.algorithm {
            return Err(refuse(Problem::AlgKeyMismatch));
        }
        match key.verifies(self.signed.as_bytes(), &self.signature) {
            true => Ok(()),
            false => Err(refuse(Problem::SignatureInvalid)),
        }
    }
}

impl Scope {
    fn read(node: Node<'_>) -> Result<Self, &'static str> {
        const KNOWN: [&str; 5] =
            ["actions", "max_invocations", "max_cost_eur", "data_categories", "max_wall_time_seconds"];
        // A bound that we do not know could not be kept.
        if !node.is_object() || node.members().any(|(name, _)| !KNOWN.contains(&name)) {
            return Err("`scope` is an object with the members of RFC 0004");
        }
        let scope = Claims(node);
        let max_cost_eur = scope.optional("max_cost_eur", Claims::text).map_err(|()| "`max_cost_eur` is a text")?;
        if max_cost_eur.is_some_and(|cost| units(cost).is_none()) {
            return Err("`max_cost_eur` is a decimal number as text");
        }
        Ok(Self {
            actions: scope.names("actions").ok_or("`actions` is a list of names")?,
            max_invocations: scope
                .optional("max_invocations", Claims::count)
                .map_err(|()| "`max_invocations` is a whole number")?,
            max_cost_eur: max_cost_eur.map(str::to_owned),
            data_categories: scope
                .optional("data_categories", Claims::names)
                .map_err(|()| "`data_categories` is a list of names")?,
            max_wall_time_seconds: scope
                .optional("max_wall_time_seconds", Claims::count)
                .map_err(|()| "`max_wall_time_seconds` is a whole number")?,
        })
    }

    /// The first member that reaches further than the scope above; a bound that is left out reaches further than any.
    fn wider_than(&self, above: &Self) -> Option<&'static str> {
        let beyond =
            |ours: Option<u128>, theirs: Option<u128>| theirs.is_some_and(|most| ours.is_none_or(|n| n > most));
        let cost = |scope: &Self| scope.max_cost_eur.as_deref().and_then(units);
        let data = match (&self.data_categories, &above.data_categories) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(ours), Some(theirs)) => !ours.is_subset(theirs),
        };
        let wide = |count: fn(&Self) -> Option<u64>| beyond(count(self).map(u128::from), count(above).map(u128::from));
        [
            ("scope.actions", !self.actions.is_subset(&above.actions)),
            ("scope.max_invocations", wide(|scope| scope.max_invocations)),
            ("scope.max_cost_eur", beyond(cost(self), cost(above))),
            ("scope.data_categories", data),
            ("scope.max_wall_time_seconds", wide(|scope| scope.max_wall_time_seconds)),
        ]
        .into_iter()
        .find_map(|(name, wider)| wider.then_some(name))
    }
}

/// Members of an object of a token.
#[derive(Clone, Copy)]
struct Claims<'a>(Node<'a>);

impl<'a> Claims<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn seconds(&self, name: &str) -> Option<i64> {
        i64::try_from(self.count(name)?).ok()
    }

    fn names(&self, name: &str) -> Option<BTreeSet<String>> {
        let list = self.0.get(name).filter(|list| list.kind() == json::Kind::Array && list.len() <= LIST_MAX)?;
        list.elements().map(|element| element.as_str().map(str::to_owned)).collect()
    }

    /// A member that may be left out, and not be anything else.
    fn optional<T>(&self, name: &str, read: impl Fn(&Self, &str) -> Option<T>) -> Result<Option<T>, ()> {
        match self.0.get(name) {
            None => Ok(None),
            Some(_) => read(self, name).map(Some).ok_or(()),
        }
    }

    fn audience(&self) -> Option<Vec<String>> {
        match self.text("aud") {
            Some(one) => Some(vec![one.to_owned()]),
            None => self.names("aud").map(|names| names.into_iter().collect()),
        }
    }
}

/// The header is closed: whatever else it could say would be about keys that we do not take from it (RFC 7515 §4).
fn read_header(header: Node<'_>) -> Result<(Algorithm, Option<String>), &'static str> {
    if header.members().any(|(name, _)| !["alg", "kid", "typ"].contains(&name)) {
        return Err("its header has `alg`, `kid` and `typ`, and nothing else");
    }
    if header.get("typ").is_some_and(|kind| kind.as_str() != Some("JWT")) {
        return Err("`typ` is `JWT`");
    }
    let algorithm = header.get("alg").and_then(Node::as_str).and_then(Algorithm::read);
    let kid = match header.get("kid") {
        None => None,
        Some(kid) => Some(kid.as_str().ok_or("`kid` is a text")?.to_owned()),
    };
    Ok((algorithm.ok_or("`alg` is `EdDSA`, `ES256` or `ES384`")?, kid))
}

/// Signs the claims of a token: a JWT as it stands in `jwt`.
pub fn sign_token(claims: &Value, key: &SigningKey) -> String {
    let header = json!({"alg": Algorithm::EdDsa.name(), "kid": key.key_id().to_string(), "typ": "JWT"});
    let part = |value: &Value| encoding::encode(&json::canonical_value(value));
    let signed = format!("{}.{}", part(&header), part(claims));
    let signature = encoding::encode(&key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// A plain decimal in units of 10^-18, with at most eighteen digits on each side.
fn units(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    let part: u128 = format!("{part:0<18}").parse().ok()?;
    Some(whole.parse::<u128>().ok()? * 10_u128.pow(18) + part)
}

fn limit(name: &str, max: u64, got: u64) -> Option<Exceeded> {
    Some(Exceeded { name: name.to_owned(), max, got })
}

#[cfg(test)]
mod tests;
