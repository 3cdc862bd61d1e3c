//! Figures and how they are summed up.

use serde::Serialize;
use std::time::Duration;

/// What a kind of question takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Half are faster.
    pub p50_ms: f64,
    /// One in a hundred is slower.
    pub p99_ms: f64,
    /// How many were timed.
    pub samples: usize,
}

impl Latency {
    /// Sums up timed questions.
    pub fn of(samples: &[Duration]) -> Self {
        let mut sorted: Vec<f64> = samples.iter().map(|sample| sample.as_secs_f64() * 1e3).collect();
        sorted.sort_by(f64::total_cmp);
        Self { p50_ms: percentile(&sorted, 0.5), p99_ms: percentile(&sorted, 0.99), samples: sorted.len() }
    }
}

/// The smallest value that at least this part of all values does not exceed.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// The geometric mean; of nothing, nothing.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let samples: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(Latency::of(&samples), Latency { p50_ms: 100.0, p99_ms: 198.0, samples: 200 });
        assert_eq!(Latency::of(&samples[..1]).p99_ms, 200.0);
    }

    #[test]
    fn the_geometric_mean_of_ten_and_a_thousand_is_a_hundred() {
        let mean = geometric_mean([10.0, 1000.0]).unwrap();
        assert!((mean - 100.0).abs() < 1e-9, "{mean}");
        assert_eq!(geometric_mean([]), None);
    }
}
