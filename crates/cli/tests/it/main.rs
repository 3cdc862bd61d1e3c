//! The binary from outside: the real commands on the real examples.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod allowing;
#[cfg(test)]
mod approving;
#[cfg(test)]
mod asking;
#[cfg(test)]
mod auditing;
#[cfg(test)]
mod bringing;
#[cfg(test)]
mod calling;
#[cfg(test)]
mod crawling;
#[cfg(test)]
mod describing;
#[cfg(test)]
mod engaging;
#[cfg(test)]
mod examining;
#[cfg(test)]
mod guarding;
#[cfg(test)]
mod hiring;
#[cfg(test)]
mod host;
#[cfg(test)]
mod introducing;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod linting;
#[cfg(test)]
mod names;
#[cfg(test)]
mod negotiating;
#[cfg(test)]
mod node;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod promising;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod run;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod signing;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod watching;
