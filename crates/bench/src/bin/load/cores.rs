//! Who runs on which processors: hostile callers stand for other machines, so they share none with the node.
//!
//! A hundred threads that are always ready delay everybody on the processors they run on, whatever class of the
//! scheduler they are in; no node can do anything about that, and no stranger far away can do it.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Processors of the machine, in two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    /// For the node and the honest callers.
    pub(crate) node: Vec<usize>,
    /// For the hostile callers.
    pub(crate) crowd: Vec<usize>,
}

impl Cores {
    /// Halves what this process may use, the larger part for the node; nothing where there is one processor.
    pub(crate) fn halved() -> Result<Option<Self>> {
        let set = sched_getaffinity(None).context("nobody says which processors there are")?;
        Ok(Self::of((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()))
    }

    fn of(mut cores: Vec<usize>) -> Option<Self> {
        let crowd = cores.split_off(cores.len().div_ceil(2));
        (!crowd.is_empty()).then_some(Self { node: cores, crowd })
    }
}

/// Lets this thread, and what it starts from now on, run on these processors only.
pub(crate) fn stay_on(cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).context("the processors cannot be chosen")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_shares_a_processor_with_the_crowd() {
        for (all, node, crowd) in [(2, 1, 1), (3, 2, 1), (8, 4, 4)] {
            let cores = Cores::of((0..all).collect()).unwrap();
            assert_eq!((cores.node.len(), cores.crowd.len()), (node, crowd));
            assert!(cores.node.iter().all(|core| !cores.crowd.contains(core)));
        }
        assert_eq!(Cores::of(vec![3]), None);
    }
}
