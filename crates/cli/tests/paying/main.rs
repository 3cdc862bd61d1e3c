//! RFC 0020 Appendix B over HTTP: the real binary as an agent, a resolver and a wallet (`rialto serve --role wallet`).

#[cfg(test)]
#[path = "../it/run.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use more of it")]
mod run;
#[cfg(test)]
#[path = "../it/node.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use more of it")]
mod node;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod market;
#[cfg(test)]
mod money;
