//! OAS Lifespan: `short_circuit`, a block of calls that is repeated back to back.
//!
//! Of all readings only this one gives both examples of the text: with N, the call that would complete the N-th repeat of
//! a block of any length is the violation (decisions/0211). Of a call only its name counts.

/// Watches the calls that an agent attempts since the user spoke.
#[derive(Clone, Debug)]
pub struct ShortCircuit {
    limit: usize,
    names: Vec<String>,
    /// For each distance, how many of the latest attempts equal the one that far before.
    runs: Vec<usize>,
}

impl ShortCircuit {
    /// Nothing attempted yet; `limit` is at least 1, and 1 forbids every call.
    pub fn new(limit: u32) -> Self {
        Self { limit: limit as usize, names: Vec::new(), runs: Vec::new() }
    }

    /// Counts an attempt; whether it may go on.
    pub fn attempt(&mut self, name: &str) -> bool {
        let repeats = self.limit.saturating_sub(1);
        let mut holds = repeats > 0;
        for (run, before) in self.runs.iter_mut().zip(self.names.iter().rev()) {
            *run = if before == name { *run + 1 } else { 0 };
        }
        for (position, run) in self.runs.iter().enumerate() {
            holds &= *run < repeats.saturating_mul(position + 1);
        }
        self.names.push(name.to_owned());
        self.runs.push(0);
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The position of the first refused call, from 1.
    fn refused(limit: u32, names: &str) -> Option<usize> {
        let mut watch = ShortCircuit::new(limit);
        names.chars().position(|name| !watch.attempt(&name.to_string())).map(|position| position + 1)
    }

    /// The text, word by word: some block stands at the end `limit` times in a row.
    fn refused_by_force(limit: usize, names: &[u8]) -> Option<usize> {
        (1..=names.len()).find(|end| {
            let so_far = &names[..*end];
            (1..=*end).any(|length| {
                end.checked_sub(limit * length).is_some_and(|start| {
                    let blocks: Vec<&[u8]> = so_far[start..].chunks(length).collect();
                    blocks.windows(2).all(|pair| pair[0] == pair[1])
                })
            })
        })
    }

    #[test]
    fn the_examples_of_the_text_and_more() {
        for (names, two, three, four) in [
            ("aaa", Some(2), Some(3), None),
            ("ababab", Some(4), Some(6), None),
            ("aa", Some(2), None, None),
            ("ababac", Some(4), None, None),
            ("abcabcabc", Some(6), Some(9), None),
            ("cababab", Some(5), Some(7), None),
            ("bababa", Some(4), Some(6), None),
            ("aabaabaab", Some(2), Some(9), None),
            ("aabbaabbaabb", Some(2), Some(12), None),
            ("abacabacabac", Some(8), Some(12), None),
            ("abaabaaba", Some(4), Some(9), None),
        ] {
            assert_eq!((refused(2, names), refused(3, names), refused(4, names)), (two, three, four), "{names}");
            assert_eq!(refused(1, names), Some(1));
        }
    }

    #[test]
    fn it_equals_brute_force_on_all_sequences_over_three_names_up_to_length_ten() {
        let mut compared = 0;
        for length in 0..=10u32 {
            for number in 0..3usize.pow(length) {
                let names: Vec<u8> = (0..length).map(|place| b'a' + (number / 3usize.pow(place) % 3) as u8).collect();
                let text = String::from_utf8(names.clone()).unwrap();
                for limit in 1..=4 {
                    assert_eq!(refused(limit as u32, &text), refused_by_force(limit, &names), "{limit} {text}");
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 4 * (3usize.pow(11) - 1) / 2);
    }
}
