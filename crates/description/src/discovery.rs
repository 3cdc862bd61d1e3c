//! ANP-08: the list of descriptions that a domain publishes, page by page.
//!
//! Whoever walks along the pages is led by strangers: only pages of the same origin, none twice, and only so many.

use crate::finding::{EE, EW, Findings, WI};
use crate::read::DESCRIPTION_LIMITS;
use crate::write::put;
use crate::{Rule, uri};
use json::{Document, Kind, Limits, Node, ParseError, Pointer, Value, json};
use std::collections::BTreeSet;

/// Pages of one domain that are read.
pub const PAGES_MAX: usize = 100;

/// Items of one domain that are taken.
pub const ITEMS_MAX: usize = 10_000;

/// Where a domain lists its descriptions.
pub const WELL_KNOWN: &str = "/.well-known/agent-descriptions";

const PAGE_LIMITS: Limits = Limits { subject: "discovery page", ..DESCRIPTION_LIMITS };

/// One description in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The address of the description.
    pub url: String,
    /// What people call the agent.
    pub name: Option<String>,
    /// Its handle, where it has one.
    pub handle: Option<String>,
}

/// One page of the list.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its descriptions; entries without an address are left out.
    pub items: Vec<Item>,
    /// The address of the next page.
    pub next: Option<String>,
    /// What is to be said about it.
    pub findings: Findings,
}

impl Page {
    /// Reads a page that was found at an address.
    pub fn read(bytes: &[u8], url: &str) -> Result<Self, ParseError> {
        let document = Document::parse(bytes, &PAGE_LIMITS)?;
        let (root, at) = (document.root(), Pointer::root());
        let mut page = Self { items: Vec::new(), next: None, findings: Findings::default() };
        let Some(list) = root.get("items").filter(|list| list.kind() == Kind::Array) else {
            page.findings.add(Rule::P1, &at, EE, "this is no object with an array `items`");
            return Ok(page);
        };
        let kind = root.get("@type").or_else(|| root.get("type")).and_then(Node::as_str);
        if kind.is_none_or(|kind| kind.rsplit([':', '/', '#']).next() != Some("CollectionPage")) {
            page.findings.add(Rule::P2, &at.child("@type"), WI, "this is not called a `CollectionPage`");
        }
        for (position, entry) in list.elements().enumerate() {
            page.take(entry, &at.child("items").child(position), url);
        }
        page.next = page.following(root.get("next"), &at.child("next"), url);
        Ok(page)
    }

    fn take(&mut self, entry: Node<'_>, at: &Pointer, url: &str) {
        let text = |name: &str| entry.get(name).and_then(Node::as_str);
        let address = ["@id", "url", "id"].into_iter().find_map(text);
        match address.and_then(|address| uri::resolve(Some(url), address)) {
            Some(url) => {
                let (name, handle) = (text("name").map(str::to_owned), text("handle").map(str::to_owned));
                self.items.push(Item { url, name, handle });
            }
            None => self.findings.add(Rule::P3, &at.child("@id"), EW, "this entry leads to no description"),
        }
    }

    fn following(&mut self, next: Option<Node<'_>>, at: &Pointer, url: &str) -> Option<String> {
        let next = next.filter(|next| !next.is_null())?;
        let address = next.as_str().and_then(|next| uri::resolve(Some(url), next));
        let near = address.filter(|address| uri::same_origin(address, url));
        if near.is_none() {
            self.findings.add(Rule::P4, at, EW, "the next page is nowhere on this host, so it is not read");
        }
        near
    }
}

/// Why a walk along the pages is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There is no next page.
    End,
    /// The next page was read before.
    Again,
    /// More pages than are read.
    TooManyPages,
    /// More descriptions than are taken.
    TooManyItems,
}

/// A walk along the pages of a domain.
#[derive(Clone, Debug)]
pub struct Walk {
    visited: BTreeSet<String>,
    items: usize,
}

impl Walk {
    /// A walk that begins at a page.
    pub fn begin(url: &str) -> Self {
        Self { visited: BTreeSet::from([without_fragment(url)]), items: 0 }
    }

    /// The address of the page after this one.
    pub fn onward(&mut self, page: &Page) -> Result<String, Stop> {
        self.items += page.items.len();
        let next = page.next.as_deref().ok_or(Stop::End)?;
        if self.items > ITEMS_MAX {
            return Err(Stop::TooManyItems);
        }
        if self.visited.len() == PAGES_MAX {
            return Err(Stop::TooManyPages);
        }
        if !self.visited.insert(without_fragment(next)) {
            return Err(Stop::Again);
        }
        Ok(next.to_owned())
    }
}

fn without_fragment(url: &str) -> String {
    url.split('#').next().unwrap_or_default().to_owned()
}

/// The pages of a list, each with its address; `address` says where the page of a number, from 1, is found.
pub fn pages(items: &[Item], per_page: usize, address: impl Fn(usize) -> String) -> Vec<(String, Value)> {
    let per_page = per_page.max(1);
    let count = items.len().div_ceil(per_page).max(1);
    let slices = items.chunks(per_page).chain(items.is_empty().then_some(&[][..]));
    let page = |(number, slice): (usize, &[Item])| {
        let url = address(number);
        let mut page = json!({
            "@context": {"@vocab": "https://schema.org/", "ad": crate::NAMESPACE},
            "@type": "CollectionPage",
            "url": url,
            "items": slice.iter().map(Item::write).collect::<Vec<_>>(),
        });
        if number < count {
            put(&mut page, "next", json!(address(number + 1)));
        }
        (url, page)
    };
    (1..).zip(slices).map(page).collect()
}

impl Item {
    fn write(&self) -> Value {
        let mut item = json!({"@type": "ad:AgentDescription", "@id": self.url});
        for (name, value) in [("name", &self.name), ("handle", &self.handle)] {
            if let Some(value) = value {
                put(&mut item, name, json!(value));
            }
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(count: usize) -> Vec<Item> {
        let item = |number| Item { url: format!("https://a.example/{number}"), name: Some("A".into()), handle: None };
        (0..count).map(item).collect()
    }

    fn address(number: usize) -> String {
        format!("https://a.example{WELL_KNOWN}?page={number}")
    }

    #[test]
    fn what_is_written_is_read_back_page_by_page() {
        for count in [0, 1, 2, 3, 7] {
            let written = pages(&items(count), 3, address);
            let mut walk = Walk::begin(&address(1));
            let (mut url, mut read) = (address(1), Vec::new());
            let stop = loop {
                let (_, body) = written.iter().find(|(at, _)| *at == url).unwrap();
                let page = Page::read(body.to_string().as_bytes(), &url).unwrap();
                assert!(page.findings.all().is_empty());
                read.extend(page.items.clone());
                match walk.onward(&page) {
                    Ok(next) => url = next,
                    Err(stop) => break stop,
                }
            };
            assert_eq!((read, stop), (items(count), Stop::End));
        }
    }

    #[test]
    fn a_walk_ends_in_circles_and_after_so_many_pages() {
        let page = |next: &str| Page { items: items(1), next: Some(next.to_owned()), findings: Findings::default() };
        let mut walk = Walk::begin("https://a.example/1");
        assert_eq!(walk.onward(&page("https://a.example/2")).as_deref(), Ok("https://a.example/2"));
        assert_eq!(walk.onward(&page("https://a.example/1#x")), Err(Stop::Again));
        let mut walk = Walk::begin("https://a.example/0");
        for number in 1..PAGES_MAX {
            assert!(walk.onward(&page(&format!("https://a.example/{number}"))).is_ok());
        }
        assert_eq!(walk.onward(&page("https://a.example/more")), Err(Stop::TooManyPages));
        let many = Page {
            items: items(ITEMS_MAX + 1),
            next: Some("https://a.example/2".into()),
            findings: Findings::default(),
        };
        assert_eq!(Walk::begin("https://a.example/1").onward(&many), Err(Stop::TooManyItems));
    }
}
