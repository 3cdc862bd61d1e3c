//! Names that somebody may have meant.

/// The names most like a wrong one: those that contain it first, then those a few letters away.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let wrong = wrong.to_lowercase();
    let mut likely: Vec<(usize, &str)> = names.filter_map(|name| Some((unlike(&wrong, name)?, name))).collect();
    likely.sort_unstable();
    likely.dedup();
    // Names of one market have much in common; only those about as near as the best are worth naming.
    let best = likely.first().map_or(0, |(distance, _)| *distance);
    likely.retain(|(distance, _)| *distance <= best + 2);
    likely.into_iter().map(|(_, name)| name).take(most).collect()
}

/// How unlike two names are; `None` beyond a third of the letters.
fn unlike(wrong: &str, name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    if !wrong.is_empty() && name.contains(wrong) {
        return Some(0);
    }
    let allowed = (wrong.chars().count() / 3).max(2);
    Some(distance(wrong, &name)).filter(|distance| *distance <= allowed)
}

/// The number of letters to insert, remove or replace.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (number, letter) in left.chars().enumerate() {
        let mut next = vec![number + 1];
        for (pair, other) in row.windows(2).zip(&right) {
            let (diagonal, above) = (pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0));
            let before = next.last().copied().unwrap_or(0);
            let replaced = diagonal + usize::from(letter != *other);
            next.push(replaced.min(above + 1).min(before + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_in_letters() {
        for (left, right, expected) in [("", "", 0), ("kitten", "sitting", 3), ("Łódź", "Lodz", 3), ("abc", "", 3)] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_understood() {
        let names = ["did:web:fjordcast.example", "did:web:windrose.example", "did:web:fjordcost.example"];
        let found = |wrong| nearest(wrong, names.into_iter(), 2);
        assert_eq!(found("fjord"), ["did:web:fjordcast.example", "did:web:fjordcost.example"]);
        assert_eq!(found("did:web:windrse.example"), ["did:web:windrose.example"]);
        assert!(found("something else entirely").is_empty());
    }
}
