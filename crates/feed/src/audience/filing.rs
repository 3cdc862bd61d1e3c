//! RFC 0020 §3.6: where a filter is filed, and the row that stands there for it.
//!
//! INVARIANT: what is counted for a filter, and where it is filed, is taken back as a whole when it goes.

use super::Audience;
use super::keys::{About, Key};
use super::paths::Asks;
use super::ranges::{Range, Ranges};
use super::rows::{CHECKS_MAX, Check, MARKS_MAX, REGISTERS_MAX, Row, Sense, push, remove};
use super::terms::{Choice, Need, Place, Table, Term, Thing, product};

/// Where a filter is filed.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    /// Nowhere, so that every document is asked.
    Unfiled,
    /// In one list, as nearly all are: under the key with this number, with this first mark.
    Under(u32, u16),
    /// Under one range of keys.
    Within(Box<(Place, u64, u64)>),
    /// In several, or in none because no document satisfies it; not many, so that what they need stands apart.
    Many(Box<Box<[Filing]>>),
}

/// One of the places of a filter.
#[derive(Clone, Debug)]
pub(crate) enum Filing {
    /// Under the key with this number, with this first mark.
    Under(u32, u16),
    /// Under a range of keys.
    Within(Box<(Place, u64, u64)>),
}

/// What leads to a term.
#[derive(Clone, Copy, Debug)]
enum Access {
    Key(Key),
    Range(Place, Range),
}

/// Rows under a key are walked faster than those around a value.
const RANGE_COST: f64 = 4.0;

impl Table {
    fn of(self, asks: &Asks) -> Option<u32> {
        let [numbers, moments] = asks.ranges;
        match self {
            Self::Numbers => numbers,
            Self::Moments => moments,
        }
    }

    fn of_mut(self, asks: &mut Asks) -> &mut Option<u32> {
        let [numbers, moments] = &mut asks.ranges;
        match self {
            Self::Numbers => numbers,
            Self::Moments => moments,
        }
    }
}

impl Asks {
    fn about(&mut self, about: About) -> &mut u32 {
        match about {
            About::Equal => &mut self.equal,
            About::Container => &mut self.containers,
            About::Element => &mut self.elements,
            About::Exists => &mut self.exists,
            About::Pattern => &mut self.patterns,
        }
    }
}

impl Audience {
    /// Counts what a filter needs.
    pub(crate) fn count(&mut self, needs: &[Need]) {
        for need in needs {
            match *need {
                Need::Has(thing) => {
                    self.keys.ask(thing.key);
                    self.count_ask(thing, 1);
                }
                Need::Lacks(thing) => {
                    self.keys.exclude(thing.key);
                    self.count_ask(thing, 1);
                }
                Need::Within(place, range) => {
                    self.retain(place);
                    if let Some(ranges) = self.ranges_mut(place) {
                        ranges.mention(range);
                    }
                }
                Need::Bounded(place, ..) => self.retain(place),
            }
        }
    }

    /// Takes [`Self::count`] back.
    pub(crate) fn count_back(&mut self, needs: &[Need]) {
        for need in needs {
            match *need {
                Need::Has(thing) => {
                    self.keys.unask(thing.key, &mut self.empty);
                    self.count_ask(thing, -1);
                }
                Need::Lacks(thing) => {
                    self.keys.unexclude(thing.key, &mut self.empty);
                    self.count_ask(thing, -1);
                }
                Need::Within(place, _) | Need::Bounded(place, ..) => self.release(place),
            }
        }
    }

    fn count_ask(&mut self, thing: Thing, by: i32) {
        if let Some(asks) = self.paths.asks_mut(thing.path) {
            let count = asks.about(thing.about);
            *count = count.saturating_add_signed(by);
        }
    }

    pub(crate) fn ranges_at(&self, place: Place) -> Option<&Ranges> {
        self.ranges.get(place.table.of(self.paths.asks(place.path)?)?)
    }

    fn ranges_mut(&mut self, place: Place) -> Option<&mut Ranges> {
        self.ranges.get_mut(place.table.of(self.paths.asks(place.path)?)?)
    }

    fn retain(&mut self, place: Place) {
        if self.ranges_at(place).is_none() {
            let number = self.ranges.insert(Ranges::default());
            if let Some(asks) = self.paths.asks_mut(place.path) {
                *place.table.of_mut(asks) = Some(number);
            }
        }
        if let Some(ranges) = self.ranges_mut(place) {
            ranges.retain();
        }
    }

    fn release(&mut self, place: Place) {
        if !self.ranges_mut(place).is_some_and(Ranges::release) {
            return;
        }
        let number = self.paths.asks_mut(place.path).and_then(|asks| place.table.of_mut(asks).take());
        if let Some(ranges) = number.and_then(|number| self.ranges.remove(number)) {
            self.registers.extend(ranges.registers.into_iter().filter(|register| *register != 0));
        }
    }

    /// How likely a document is to meet the filter here, times how many filters it may meet besides. Documents are like
    /// the questions about them: what many ask for, many have.
    fn cost(&self, need: &Need) -> Option<f64> {
        match *need {
            Need::Has(thing) => {
                let asked = self.keys.get(thing.key).map_or(0, |filed| filed.asked);
                Some(f64::from(asked) * self.share(thing))
            }
            Need::Within(place, range) => {
                Some(RANGE_COST * self.ranges_at(place)?.share(range) * self.slots.len() as f64)
            }
            Need::Lacks(_) | Need::Bounded(..) => None,
        }
    }

    /// Which part of all documents is likely to have a thing.
    fn share(&self, thing: Thing) -> f64 {
        let asked = self.keys.get(thing.key).map_or(0, |filed| filed.asked);
        let all = self.paths.asks(thing.path).map_or(0, |asks| *asks.clone().about(thing.about));
        f64::from(asked) / f64::from(all.max(1))
    }

    /// Files a filter, where it leads fewest documents.
    pub(crate) fn file(&mut self, slot: u32, choices: Vec<Choice>) -> Places {
        let least = |term: &Term| term.needs.iter().filter_map(|need| self.cost(need)).min_by(f64::total_cmp);
        let cost = |choice: &Choice| choice.iter().try_fold(0.0, |sum, term| Some(sum + least(term)?));
        let costs = choices.iter().map(cost).enumerate().filter_map(|(place, cost)| Some((place, cost?)));
        let cheapest = costs.min_by(|(_, left), (_, right)| left.total_cmp(right)).map(|(place, _)| place);
        let terms = product(choices, cheapest);
        let mut filed = Vec::with_capacity(terms.len());
        for term in &terms {
            match self.access(term) {
                Some(access) => filed.push((access, term)),
                None => return self.leave_unfiled(slot, &terms),
            }
        }
        let places: Vec<Filing> =
            filed.into_iter().filter_map(|(access, term)| self.file_term(slot, term, access)).collect();
        match <[Filing; 1]>::try_from(places) {
            Ok([Filing::Under(number, first)]) => Places::Under(number, first),
            Ok([Filing::Within(range)]) => Places::Within(range),
            Err(places) => Places::Many(Box::new(places.into())),
        }
    }

    /// Files one term, unless no document has what it needs.
    fn file_term(&mut self, slot: u32, term: &Term, access: Access) -> Option<Filing> {
        let row = self.row(slot, term, Some(access));
        let [first, ..] = row.marks;
        match access {
            Access::Key(key) => Some(Filing::Under(self.keys.file(key, row)?, first)),
            Access::Range(place, range) => {
                let (first, last) = range.keys();
                self.ranges_mut(place).filter(|_| first <= last)?.insert(range, row);
                Some(Filing::Within(Box::new((place, first, last))))
            }
        }
    }

    fn leave_unfiled(&mut self, slot: u32, terms: &[Term]) -> Places {
        let row = match terms {
            [term] => self.row(slot, term, None),
            _ => Row::new(slot, false),
        };
        push(&mut self.unfiled, row);
        Places::Unfiled
    }

    /// Takes a filter from where it was filed.
    pub(crate) fn unfile(&mut self, slot: u32, places: &Places) {
        match places {
            Places::Unfiled => remove(&mut self.unfiled, slot),
            Places::Under(number, first) => self.keys.unfile(*number, slot, *first),
            Places::Within(range) => self.unfile_range(slot, **range),
            Places::Many(filings) => {
                for filing in &***filings {
                    match filing {
                        Filing::Under(number, first) => self.keys.unfile(*number, slot, *first),
                        Filing::Within(range) => self.unfile_range(slot, **range),
                    }
                }
            }
        }
    }

    fn unfile_range(&mut self, slot: u32, (place, first, last): (Place, u64, u64)) {
        if let Some(ranges) = self.ranges_mut(place) {
            ranges.remove(first, last, slot);
        }
    }

    /// The need of a term that leads fewest documents to it.
    fn access(&self, term: &Term) -> Option<Access> {
        let costs = term.needs.iter().filter_map(|need| {
            let need = match *need {
                Need::Within(place, range) => Need::Within(place, self.window(term, place, range)),
                other => other,
            };
            Some((self.cost(&need)?, need))
        });
        let (_, need) = costs.min_by(|(left, _), (right, _)| left.total_cmp(right))?;
        match need {
            Need::Has(thing) => Some(Access::Key(thing.key)),
            Need::Within(place, range) => Some(Access::Range(place, range)),
            Need::Lacks(_) | Need::Bounded(..) => None,
        }
    }

    /// Where there is one value at most, it lies in all ranges of a term at once.
    fn window(&self, term: &Term, place: Place, range: Range) -> Range {
        if !self.paths.is_plain(place.path) {
            return range;
        }
        term.needs.iter().fold(range, |range, need| match need {
            Need::Within(known, other) if *known == place => range.meet(*other),
            _ => range,
        })
    }

    /// What else a term needs; it decides only if all of that has room.
    fn row(&mut self, slot: u32, term: &Term, access: Option<Access>) -> Row {
        let (mut things, mut absent, mut checks) = (Vec::new(), Vec::new(), Vec::new());
        for need in &term.needs {
            match (*need, access) {
                (Need::Has(thing), Some(Access::Key(key))) if thing.key == key => {}
                (Need::Has(Thing { about: About::Exists, key, .. }), _) => things.push((1.0, key)),
                (Need::Has(thing), _) => things.push((self.share(thing), thing.key)),
                (Need::Lacks(thing), _) => absent.push(thing.key),
                (Need::Within(place, range), Some(Access::Range(known, filed)))
                    if place == known && (self.paths.is_plain(place.path) || range == filed) => {}
                (Need::Within(place, range), _) => {
                    for (sense, end) in range.ends() {
                        let share = |ranges: &Ranges| match sense {
                            Sense::SomeAbove => ranges.share(Range { last: None, ..range }),
                            _ => ranges.share(Range { first: None, ..range }),
                        };
                        checks.push((self.ranges_at(place).map_or(1.0, share), place, sense, end));
                    }
                }
                (Need::Bounded(place, sense, end), _) => checks.push((1.0, place, sense, end)),
            }
        }
        things.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        checks.sort_by(|(left, ..), (right, ..)| left.total_cmp(right));
        let fits = things.len() + absent.len() <= MARKS_MAX && checks.len() <= CHECKS_MAX;
        let mut decides = term.decides && fits;
        let mut marks = [0; MARKS_MAX];
        let mut free = marks.iter_mut();
        for ((_, key), place) in things.into_iter().zip(free.by_ref()) {
            *place = self.keys.mark(key).unwrap_or_default();
            decides &= *place != 0;
        }
        for (key, place) in absent.into_iter().zip(free) {
            *place = self.keys.mark_of_absence(key, &mut self.empty).unwrap_or_default();
            decides &= *place != 0;
        }
        let mut filled = Vec::with_capacity(CHECKS_MAX);
        for (_, place, sense, end) in checks.into_iter().take(CHECKS_MAX) {
            match self.register(place, sense) {
                Some(register) => filled.push((register, Check::of(sense, end))),
                None => decides = false,
            }
        }
        let mut row = Row::new(slot, decides);
        row.marks = marks;
        filled.into_iter().enumerate().for_each(|(place, (register, check))| row.compare(place, register, check));
        row
    }

    /// The register of a sense at a place, as long as there are some left.
    fn register(&mut self, place: Place, sense: Sense) -> Option<u8> {
        let known = self.ranges_at(place)?.registers.get(sense as usize).copied()?;
        if known != 0 {
            return Some(known);
        }
        let new = self.registers.pop().or_else(|| {
            self.registers_used = self.registers_used.checked_add(1).filter(|new| usize::from(*new) < REGISTERS_MAX)?;
            Some(self.registers_used)
        })?;
        self.empty.reset(new, sense);
        if let Some(register) = self.ranges_mut(place)?.registers.get_mut(sense as usize) {
            *register = new;
        }
        Some(new)
    }
}
