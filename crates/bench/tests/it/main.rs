//! The benchmark from outside: its corpus, its questions, the peer, and a stand-in for a node.

mod agreement;
