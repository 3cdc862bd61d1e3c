//! RFC 0020 A.1, A.3 R2: what a leaf means for the values at one path.

use crate::column::Column;
use crate::index::Bounds;
use crate::key::{NumberKey, decimal_key, filed};
use aql::{Bound, Comparison, Fuel, Instant, Literal, Pattern, Predicate};
use json::{Kind, Node};
use roaring::{MultiOps, RoaringBitmap};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// Records with a value at the path that passes; `elements` are the values one level below, in arrays.
pub(crate) fn bounds(predicate: &Predicate, column: &Column, elements: Option<&Column>, many: bool) -> Bounds {
    match predicate {
        Predicate::Exists => Bounds::exact(column.present.clone()),
        Predicate::Eq(literal) => equal(literal, column),
        Predicate::In(list) => union(list.literals().map(|literal| equal(&literal, column))),
        Predicate::Ne(literal) => other(equal(literal, column), column, many),
        Predicate::NotIn(list) => other(union(list.literals().map(|literal| equal(&literal, column))), column, many),
        Predicate::Compare(comparison, bound) => compare(*comparison, bound, column),
        Predicate::Contains(literal) => contains(literal, column, elements),
        Predicate::Matches(pattern) => matches(pattern, column),
        Predicate::Before(moment) => moments(column, (Unbounded, Excluded(*moment))),
        Predicate::After(moment) => moments(column, (Excluded(*moment), Unbounded)),
        Predicate::Within(start, end) => moments(column, (Included(*start), Included(*end))),
        Predicate::Outside(start, end) => union(
            [moments(column, (Unbounded, Excluded(*start))), moments(column, (Excluded(*end), Unbounded))].into_iter(),
        ),
    }
}

fn union(parts: impl Iterator<Item = Bounds>) -> Bounds {
    parts.fold(Bounds::default(), |mut sum, part| {
        sum.certain |= part.certain;
        sum.possible |= part.possible;
        sum
    })
}

fn equal(literal: &Literal, column: &Column) -> Bounds {
    match literal {
        Literal::Number(number) => {
            Bounds::exact(column.numbers.get(&NumberKey::of(*number)).cloned().unwrap_or_default())
        }
        Literal::Text(text, _) => match filed(text) {
            (whole, true) => Bounds::exact(column.texts.get(whole).cloned().unwrap_or_default()),
            (_, false) => Bounds::possible(column.long.clone()),
        },
        Literal::Other(document) => equal_other(document.root(), column),
    }
}

fn equal_other(node: Node<'_>, column: &Column) -> Bounds {
    match (node.kind(), node.as_bool()) {
        (Kind::Null, _) => Bounds::exact(column.nulls.clone()),
        (Kind::Bool, Some(true)) => Bounds::exact(column.trues.clone()),
        (Kind::Bool, _) => Bounds::exact(column.falses.clone()),
        (Kind::Array, _) => Bounds::possible(column.arrays.clone()),
        _ => Bounds::possible(column.objects.clone()),
    }
}

/// Some value is not among `equal`: certainly where none is; where there are many values, possibly everywhere.
fn other(equal: Bounds, column: &Column, many: bool) -> Bounds {
    let certain = &column.present - &equal.possible;
    let possible = if many { column.present.clone() } else { &column.present - &equal.certain };
    Bounds { certain, possible }
}

fn compare(comparison: Comparison, bound: &Bound, column: &Column) -> Bounds {
    match bound {
        Bound::Instant(moment) => moments(column, range(comparison, *moment)),
        Bound::Number(number) => {
            let key = NumberKey::of(*number);
            let numbers = Bounds::exact(sum(column.numbers.range(range(comparison, key))));
            union([numbers, near(comparison, key, &column.decimals)].into_iter())
        }
        Bound::Decimal(text) => match decimal_key(text) {
            Some(key) => {
                let parts = [near(comparison, key, &column.numbers), near(comparison, key, &column.decimals)];
                union(parts.into_iter())
            }
            None => Bounds::possible(column.present.clone()),
        },
    }
}

/// Keys that keep the order but not every difference: what shares the bound's key is only possible.
fn near(comparison: Comparison, key: NumberKey, map: &std::collections::BTreeMap<NumberKey, RoaringBitmap>) -> Bounds {
    let strict = match comparison {
        Comparison::Less | Comparison::AtMost => (Unbounded, Excluded(key)),
        Comparison::Greater | Comparison::AtLeast => (Excluded(key), Unbounded),
    };
    let certain = sum(map.range(strict));
    let mut possible = certain.clone();
    if let Some(same) = map.get(&key) {
        possible |= same;
    }
    Bounds { certain, possible }
}

fn range<K>(comparison: Comparison, key: K) -> (std::ops::Bound<K>, std::ops::Bound<K>) {
    match comparison {
        Comparison::Less => (Unbounded, Excluded(key)),
        Comparison::AtMost => (Unbounded, Included(key)),
        Comparison::Greater => (Excluded(key), Unbounded),
        Comparison::AtLeast => (Included(key), Unbounded),
    }
}

fn moments(column: &Column, range: (std::ops::Bound<Instant>, std::ops::Bound<Instant>)) -> Bounds {
    // An interval of one excluded point is empty, and a map will not be asked for it.
    Bounds::exact(sum(column.moments.range(range)))
}

fn sum<'a, K: 'a>(entries: impl Iterator<Item = (&'a K, &'a RoaringBitmap)>) -> RoaringBitmap {
    entries.map(|(_, set)| set).union()
}

/// Text in text by asking every distinct text; an element by the values one level below.
fn contains(literal: &Literal, column: &Column, elements: Option<&Column>) -> Bounds {
    let in_text = match literal {
        Literal::Text(needle, _) => {
            let has = column.texts.iter().filter(|(text, _)| text.contains(&**needle));
            Bounds { certain: sum(has), possible: RoaringBitmap::new() }.or_possible(&column.long)
        }
        Literal::Number(_) | Literal::Other(_) => Bounds::default(),
    };
    let in_array = match literal {
        // A run of elements is decided by the record.
        Literal::Other(document) if document.root().kind() == Kind::Array => Bounds::possible(column.arrays.clone()),
        literal => elements.map(|elements| equal(literal, elements)).unwrap_or_default(),
    };
    union([in_text, in_array].into_iter())
}

fn matches(pattern: &Pattern, column: &Column) -> Bounds {
    let (mut certain, mut undecided) = (Vec::new(), column.long.clone());
    for (text, set) in &column.texts {
        match pattern.is_match(text, &mut Fuel::STANDARD.match_steps.clone()) {
            Ok(true) => certain.push(set),
            Ok(false) => {}
            // Whoever evaluates the record will say that the pattern ran out of steps.
            Err(_) => undecided |= set,
        }
    }
    Bounds { certain: certain.into_iter().union(), possible: RoaringBitmap::new() }.or_possible(&undecided)
}
