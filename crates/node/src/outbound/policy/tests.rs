//! What may be reached, as tables; nothing is sent.

use super::super::spellings::{HOSTS_FORBIDDEN, HOSTS_LEADING_INSIDE, HOSTS_UNREADABLE};
use super::*;

const PUBLIC: &[&str] = &[
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2000::1",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2003::1",
    "2606:4700:4700::1111",
    "2620:4f:7fff::1",
    "2620:4f:8001::1",
    "3fff:1000::1",
    "3ffe:ffff::1",
    "64:ff9b::8.8.8.8",
    "64:ff9b::101:101",
];

const SPECIAL: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "0.255.255.255",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.255.255",
    "192.0.0.0",
    "192.0.0.8",
    "192.0.0.9",
    "192.0.0.10",
    "192.0.0.170",
    "192.0.0.171",
    "192.0.2.1",
    "192.0.2.255",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.175.48.1",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.0",
    "203.0.113.255",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.254",
    "255.255.255.255",
    "::",
    "::2",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:8.8.8.8",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::224.0.0.1",
    "64:ff9b:0:0:0:1::1",
    "64:ff9b:1::8.8.8.8",
    "64:ff9b:1:ffff::1",
    "100::1",
    "100:0:0:1::1",
    "1fff::1",
    "2001::1",
    "2001:0:7f00:1::80ff:fffe",
    "2001:1::1",
    "2001:1::2",
    "2001:1::3",
    "2001:2::1",
    "2001:3::1",
    "2001:4:112::1",
    "2001:10::1",
    "2001:20::1",
    "2001:30::1",
    "2001:1ff:ffff::1",
    "2001:db8::1",
    "2001:db8:ffff:ffff::1",
    "2002::1",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "2002:808:808::1",
    "2620:4f:8000::1",
    "3fff::1",
    "3fff:fff::1",
    "4000::1",
    "5f00::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff00::1",
    "ff02::1",
    "ff0e::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
];

const PRIVATE: &[&str] = &[
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "127.0.0.0",
    "127.0.0.1",
    "127.1.2.3",
    "127.255.255.255",
    "172.16.0.0",
    "172.31.255.255",
    "192.168.0.0",
    "192.168.255.255",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff:ffff::1",
];

#[track_caller]
fn check_address(text: &str, public: bool, with_private: bool) {
    let address: IpAddr = text.parse().unwrap();
    assert_eq!(is_public(address), public, "{text}");
    assert_eq!(is_public_or_private(address), with_private, "{text} in a test network");
}

#[test]
fn addresses_are_told_apart() {
    for text in PUBLIC {
        check_address(text, true, true);
    }
    for text in SPECIAL {
        check_address(text, false, false);
    }
    for text in PRIVATE {
        check_address(text, false, true);
    }
    assert!(PUBLIC.len() + SPECIAL.len() + PRIVATE.len() > 120);
}

/// The blocks of the IANA special-purpose registries of 2025, and of multicast, as first and last address. NAT64 is not
/// among them, since it carries IPv4 addresses of every kind.
const BLOCKS: &[(&str, &str)] = &[
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.0.0", "192.0.0.7"),
    ("192.0.0.8", "192.0.0.8"),
    ("192.0.0.9", "192.0.0.9"),
    ("192.0.0.10", "192.0.0.10"),
    ("192.0.0.170", "192.0.0.171"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.31.196.0", "192.31.196.255"),
    ("192.52.193.0", "192.52.193.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("192.175.48.0", "192.175.48.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "239.255.255.255"),
    ("240.0.0.0", "255.255.255.255"),
    ("::", "::"),
    ("::1", "::1"),
    ("::ffff:0.0.0.0", "::ffff:255.255.255.255"),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
    ("100::", "100::ffff:ffff:ffff:ffff"),
    ("100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff"),
    ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:1::1", "2001:1::3"),
    ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"),
    ("2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff"),
    ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
];

#[test]
fn no_address_of_a_special_purpose_is_public() {
    for (first, last) in BLOCKS {
        for text in [first, last] {
            let address: IpAddr = text.parse().unwrap();
            assert!(!is_public(address), "{text}");
            if let IpAddr::V4(address) = address {
                let [a, b, c, d] = address.octets();
                let inside = Ipv6Addr::from([0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]);
                assert!(!is_public(inside.into()), "{inside}");
                assert!(!is_public(address.to_ipv6_mapped().into()), "{text} mapped");
                assert!(!is_public(address.to_ipv6_compatible().into()), "{text} compatible");
            }
        }
    }
}

fn outcome(private_networks: bool, url: &str) -> Result<(), FetchError> {
    let policy = DoorPolicy { private_networks, ..DoorPolicy::default() };
    policy.admit(url, policy.reach()).map(|_| ())
}

#[test]
fn a_host_is_forbidden_in_every_spelling() {
    for host in HOSTS_FORBIDDEN {
        assert_eq!(outcome(false, &format!("https://{host}/x")), Err(FetchError::HostForbidden), "{host}");
    }
    for host in HOSTS_UNREADABLE {
        assert_eq!(outcome(false, &format!("https://{host}/x")), Err(FetchError::Url), "{host}");
    }
    for host in HOSTS_LEADING_INSIDE {
        assert_eq!(outcome(false, &format!("https://{host}/x")), Ok(()), "{host}");
    }
}

#[test]
fn what_is_no_plain_https_url_is_refused() {
    for url in [
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "data:application/json,{}",
        "//example.com/",
        "example.com",
        "",
        "https://",
        "https:///",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://:secret@example.com/",
        "https://127.0.0.1@example.com/",
        "https://example.com:99999/",
        "https://exa mple.com/",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://256.256.256.256/",
        "https://1.2.3.4.5/",
        "https://0x7g.1/",
        "https://xn--/",
        "https://a%00.com/",
        "https://a%2Fb.com/",
    ] {
        assert_eq!(outcome(false, url), Err(FetchError::Url), "{url}");
        assert_eq!(outcome(true, url), Err(FetchError::Url), "{url} in a test network");
    }
}

#[test]
fn a_backslash_or_a_tab_does_not_hide_the_host() {
    for url in ["https:\\\\127.0.0.1\\x", "https://127.0.0.1\\@example.com/", "https://127.\t0.0.1/", "https:127.0.0.1"]
    {
        assert_eq!(outcome(false, url), Err(FetchError::HostForbidden), "{url}");
    }
}

#[test]
fn ports_are_443_and_the_free_ones() {
    assert!(PORTS_FORBIDDEN.is_sorted());
    for port in [443, 1024, 3000, 8080, 8443, 32_768, 65_535] {
        assert_eq!(outcome(false, &format!("https://example.com:{port}/")), Ok(()), "{port}");
    }
    for port in [
        0, 1, 20, 21, 22, 23, 25, 53, 80, 110, 111, 143, 389, 442, 444, 445, 465, 587, 631, 873, 993, 1023, 2375, 2379,
        3306, 5432, 6379, 9200, 10250, 11211, 27017,
    ] {
        assert_eq!(outcome(false, &format!("https://example.com:{port}/")), Err(FetchError::PortForbidden), "{port}");
    }
}

#[test]
fn public_names_are_admitted() {
    for host in ["example.com", "a.b.c.example.co.uk", "bücher.example", "127.0.0.1.nip.io", "local.com", "10.example"]
    {
        assert_eq!(outcome(false, &format!("https://{host}/did.json")), Ok(()), "{host}");
    }
}

#[test]
fn a_test_network_reaches_its_own_machines_and_not_the_metadata_service() {
    for host in ["localhost", "127.0.0.1", "[::1]", "10.0.0.1", "192.168.1.1", "[fd00::1]", "agent.test", "node-2"] {
        assert_eq!(outcome(true, &format!("https://{host}:8443/")), Ok(()), "{host}");
    }
    for host in
        ["169.254.169.254", "0.0.0.0", "224.0.0.1", "[fe80::1]", "[::]", "[ff02::1]", "[::ffff:169.254.169.254]"]
    {
        assert_eq!(outcome(true, &format!("https://{host}:8443/")), Err(FetchError::HostForbidden), "{host}");
    }
    assert_eq!(outcome(true, "https://localhost:6379/"), Err(FetchError::PortForbidden));
}

#[track_caller]
fn check_plain(private_networks: bool, url: &str, plain: Option<&str>) {
    let policy = DoorPolicy { private_networks, ..DoorPolicy::default() };
    let destination = policy.admit(url, policy.reach()).unwrap();
    assert_eq!(destination.plain().as_ref().map(Url::as_str), plain, "{url}");
}

#[test]
fn only_a_named_port_of_this_machine_in_a_test_network_is_asked_without_tls() {
    check_plain(true, "https://localhost:8080/x", Some("http://localhost:8080/x"));
    check_plain(true, "https://a.localhost:8080/x", Some("http://a.localhost:8080/x"));
    check_plain(true, "https://127.0.0.9:8080/x", Some("http://127.0.0.9:8080/x"));
    check_plain(true, "https://[::1]:8080/x", Some("http://[::1]:8080/x"));
    check_plain(true, "https://localhost/x", None);
    check_plain(true, "https://10.0.0.1:8080/x", None);
    check_plain(true, "https://agent.test:8080/x", None);
    check_plain(true, "https://example.com:8080/x", None);
    check_plain(false, "https://example.com:8080/x", None);
    check_plain(true, "http://localhost:8080/x", None);
    for (url, error) in [
        ("http://10.0.0.1:8080/x", FetchError::Url),
        ("http://agent.test:8080/x", FetchError::Url),
        ("http://169.254.169.254:8080/x", FetchError::HostForbidden),
        ("http://localhost/x", FetchError::PortForbidden),
    ] {
        assert_eq!(outcome(true, url), Err(error), "{url}");
    }
    assert_eq!(outcome(false, "http://localhost:8080/x"), Err(FetchError::Url));
}

#[test]
fn requests_count_to_the_registrable_domain() {
    for (name, domain) in [
        ("victim.com", "victim.com"),
        ("a.victim.com", "victim.com"),
        ("x.y.z.victim.com", "victim.com"),
        ("victim.co.uk", "victim.co.uk"),
        ("a.b.victim.co.uk", "victim.co.uk"),
        ("co.uk", "co.uk"),
        ("a.victim.de", "victim.de"),
        ("a.co.com", "co.com"),
        ("single", "single"),
    ] {
        assert_eq!(registrable(name), domain, "{name}");
    }
}

#[test]
fn a_hop_stays_on_its_host_and_port() {
    let policy = DoorPolicy::default();
    let from = policy.admit("https://a.example.com:8443/one/two", policy.reach()).unwrap();
    for (location, url) in [
        ("/three", "https://a.example.com:8443/three"),
        ("three?x=1", "https://a.example.com:8443/one/three?x=1"),
        ("https://A.example.com:8443/", "https://a.example.com:8443/"),
        ("//a.example.com:8443/x", "https://a.example.com:8443/x"),
    ] {
        let next = policy.hop(&from, location, policy.reach()).unwrap();
        assert_eq!(next.url().as_str(), url, "{location}");
    }
    for location in [
        "https://b.example.com:8443/",
        "https://a.example.com/",
        "https://a.example.com:8444/",
        "//b.example.com:8443/",
        "http://a.example.com:8443/",
        "https://u@a.example.com:8443/",
        "https://a.example.com.:8443/",
        "https://127.0.0.1:8443/",
        "file:///etc/passwd",
        "javascript:1",
        "https://",
    ] {
        assert_eq!(policy.hop(&from, location, policy.reach()).err(), Some(FetchError::Redirect), "{location}");
    }
}
