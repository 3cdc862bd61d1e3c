//! Where the door lets us go: which URLs, which addresses, which ports, how long, how often.
//!
//! A stranger's DID makes us connect somewhere, so the stranger chooses the place and we stand inside our own network.
//! Hence the rule is what may be reached, not what may not: an address must be one of the public internet, in every
//! spelling the URL standard folds into it.
//!
//! INVARIANT: only [`DoorPolicy::admit`] makes a [`Destination`]; no request of the door goes out without one.

use super::FetchError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use url::{Host, Url};

/// What the door allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorPolicy {
    /// For test networks only: loopback and private addresses, any name, and plain http on loopback.
    pub private_networks: bool,
    /// How long a connection may take to stand, TLS included.
    pub connect: Duration,
    /// How long everything may take, from waiting for a turn to the last byte.
    pub total: Duration,
    /// Requests under way at a time.
    pub parallel: usize,
    /// Requests under way to one host at a time.
    pub parallel_per_host: usize,
    /// Requests to one registrable domain in a minute.
    pub per_minute: u32,
    /// How long it may take to bring an event to a subscriber who agreed.
    pub bring: Duration,
    /// Events that are brought at a time.
    pub bring_parallel: usize,
    /// Events that are brought to one host at a time.
    pub bring_parallel_per_host: usize,
    /// Events that are brought to one registrable domain in a minute.
    pub bring_per_minute: u32,
}

impl Default for DoorPolicy {
    fn default() -> Self {
        Self {
            private_networks: false,
            connect: Duration::from_secs(2),
            total: Duration::from_secs(5),
            parallel: 64,
            parallel_per_host: 2,
            per_minute: 60,
            bring: Duration::from_secs(feed::webhook::ATTEMPT_SECONDS),
            bring_parallel: 256,
            bring_parallel_per_host: 4,
            bring_per_minute: 6_000,
        }
    }
}

/// Says of an address whether we may connect to it.
pub(super) type Reach = fn(IpAddr) -> bool;

impl DoorPolicy {
    /// The same door for what is brought to those who agreed: they are more, and they are slower, and neither is to hold
    /// up whoever is asked for a key.
    pub(super) fn bringing(&self) -> Self {
        Self {
            total: self.bring,
            parallel: self.bring_parallel,
            parallel_per_host: self.bring_parallel_per_host,
            per_minute: self.bring_per_minute,
            ..self.clone()
        }
    }

    /// Which addresses this policy reaches.
    pub(super) fn reach(&self) -> Reach {
        if self.private_networks { is_public_or_private } else { is_public }
    }

    /// Checks a URL before anything is sent. Addresses written into a URL are judged here, since nobody resolves them.
    pub(super) fn admit(&self, url: &str, reach: Reach) -> Result<Destination, FetchError> {
        let url = Url::parse(url).map_err(|_| FetchError::Url)?;
        let plain = self.private_networks && url.scheme() == "http";
        if !(plain || url.scheme() == "https") || !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Url);
        }
        let loopback = match url.host().ok_or(FetchError::Url)? {
            Host::Domain(name) if self.private_networks => is_localhost(name),
            Host::Domain(name) if is_public_name(name) => false,
            Host::Ipv4(address) if self.private_networks && reach(address.into()) => address.is_loopback(),
            Host::Ipv6(address) if self.private_networks && reach(address.into()) => {
                address.to_canonical().is_loopback()
            }
            Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_) => return Err(FetchError::HostForbidden),
        };
        if plain && !loopback {
            return Err(FetchError::Url);
        }
        if !is_open(url.port_or_known_default().unwrap_or_default()) {
            return Err(FetchError::PortForbidden);
        }
        Ok(Destination { url, loopback })
    }

    /// Checks where a reply sends us on: by all rules of a first request, and on the same host and port.
    pub(super) fn hop(&self, from: &Destination, location: &str, reach: Reach) -> Result<Destination, FetchError> {
        let url = from.url.join(location).map_err(|_| FetchError::Redirect)?;
        let next = self.admit(url.as_str(), reach).map_err(|_| FetchError::Redirect)?;
        let place = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
        if place(&next.url) == place(&from.url) { Ok(next) } else { Err(FetchError::Redirect) }
    }
}

/// A place we may ask.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    url: Url,
    loopback: bool,
}

impl Destination {
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The host as the URL standard writes it.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The same place without TLS, if it is on this machine, the policy is one of a test network, and a port is named.
    pub(super) fn plain(&self) -> Option<Url> {
        let mut plain = self.url.clone();
        let tls = plain.scheme() == "https";
        let asked = tls && self.loopback && plain.port().is_some() && plain.set_scheme("http").is_ok();
        asked.then_some(plain)
    }

    /// Whom the request is counted for: random names below one domain all count to it.
    pub(super) fn registrable(&self) -> &str {
        match self.url.host() {
            Some(Host::Domain(name)) => registrable(name),
            Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => self.host(),
        }
    }
}

/// Second levels under which countries register names.
const REGISTRY_LABELS: &[&str] = &["ac", "co", "com", "edu", "gov", "go", "ne", "net", "or", "org"];

/// The last two labels, or three where a country registers on the third level.
///
/// Coarser than the public suffix list on purpose: too few requests to a shared host are better than too many.
pub(crate) fn registrable(name: &str) -> &str {
    let mut from_right = name.rmatch_indices('.').map(|(at, _)| at);
    let (top, second, third) = (from_right.next(), from_right.next(), from_right.next());
    let after = |dot: Option<usize>| dot.and_then(|at| name.get(at + 1..)).unwrap_or(name);
    let by_country =
        after(top).len() == 2 && after(second).split('.').next().is_some_and(|label| REGISTRY_LABELS.contains(&label));
    if by_country { after(third) } else { after(second) }
}

/// Names that mean something inside a network only: the special-use names, and those of RFC 6762 appendix G.
const INNER_NAMES: &[&str] = &[
    "alt",
    "arpa",
    "corp",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "test",
];

/// Whether a name can be one of the public internet: two labels at least, none empty, no inner name.
fn is_public_name(name: &str) -> bool {
    let top = name.rsplit('.').next().unwrap_or_default();
    name.contains('.') && !name.ends_with('.') && !INNER_NAMES.contains(&top)
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Ports above the system ports behind which no document lies, and behind which a stray request does harm: stores,
/// queues, control planes, proxies, remote desktops, and what browsers refuse as well.
const PORTS_FORBIDDEN: &[u16] = &[
    1080, 1433, 1434, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3128, 3306, 3389, 3659,
    4045, 4190, 4222, 5060, 5061, 5432, 5671, 5672, 5900, 5984, 5985, 5986, 6000, 6379, 6380, 6443, 6566, 6665, 6666,
    6667, 6668, 6669, 6679, 6697, 7000, 7001, 7199, 7474, 7687, 8086, 8200, 8300, 8301, 8500, 8883, 9042, 9092, 9160,
    9200, 9300, 10080, 10250, 10255, 10256, 11211, 15672, 26257, 26379, 27017, 27018, 27019, 28015,
];

fn is_open(port: u16) -> bool {
    port == 443 || (port >= 1024 && PORTS_FORBIDDEN.binary_search(&port).is_err())
}

/// The IANA special-purpose registry for IPv4, and multicast. What it calls reachable is left out too: no agent lives
/// at an anycast service of the network itself.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only block from which public IPv6 addresses are given out.
const GLOBAL_UNICAST_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The IANA special-purpose registry for IPv6 inside that block. Teredo (within the first) and 6to4 wrap an IPv4
/// address; both are history, so whatever they wrap is refused.
const SPECIAL_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Networks without IPv4 reach it through this prefix, so the address inside is judged.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if lies_in_v6(address, NAT64) => is_public_v4(embedded_v4(address)),
        IpAddr::V6(address) => {
            lies_in_v6(address, GLOBAL_UNICAST_V6) && !SPECIAL_V6.iter().any(|block| lies_in_v6(address, *block))
        }
    }
}

/// The same, and the addresses of this machine and of private networks. Link-local stays out: metadata services of
/// clouds live there.
fn is_public_or_private(address: IpAddr) -> bool {
    let inner = match address.to_canonical() {
        IpAddr::V4(address) => {
            let shared = lies_in_v4(address, (Ipv4Addr::new(100, 64, 0, 0), 10));
            address.is_loopback() || address.is_private() || shared
        }
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    };
    inner || is_public(address)
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|block| lies_in_v4(address, *block))
}

fn lies_in_v4(address: Ipv4Addr, (base, prefix): (Ipv4Addr, u32)) -> bool {
    (address.to_bits() ^ base.to_bits()).leading_zeros() >= prefix
}

fn lies_in_v6(address: Ipv6Addr, (base, prefix): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ base.to_bits()).leading_zeros() >= prefix
}

/// The last 32 bits as an IPv4 address.
fn embedded_v4(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests;
