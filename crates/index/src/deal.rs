//! Putting things into groups by counting: first how many there are of each, then each to its place. Their order stays.

/// Counts one more of a group.
pub(crate) fn add(counts: &mut [usize], group: usize) {
    if let Some(count) = counts.get_mut(group) {
        *count += 1;
    }
}

/// Turns how many there are of each group into where each group starts; returns where each ends.
pub(crate) fn starts(counts: &mut [usize]) -> Vec<usize> {
    let mut end = 0;
    let ends = counts.iter_mut().map(|count| {
        let start = end;
        end += *count;
        *count = start;
        end
    });
    ends.collect()
}

/// Puts a thing at the next place of its group.
pub(crate) fn deal<T>(things: &mut [T], places: &mut [usize], group: usize, thing: T) {
    if let Some(place) = places.get_mut(group) {
        if let Some(slot) = things.get_mut(*place) {
            *slot = thing;
        }
        *place += 1;
    }
}
