//! OAS Engagement: what the Engagement calls a capability.
//!
//! A capability is called by its name alone. Where two share one, the plainest reference keeps it (a bare name, then an
//! agent of this server, then one of another), and the others are called by their whole reference (decisions/0210).

use crate::Reference;

/// One key for each reference, in their order.
pub(super) fn keys(references: &[Reference]) -> Vec<String> {
    references
        .iter()
        .map(|reference| {
            let rivals = references.iter().filter(|other| other.name() == reference.name() && *other != reference);
            let keeps = rivals.into_iter().all(|other| rank(reference) < rank(other));
            if keeps { reference.name().to_string() } else { reference.to_string() }
        })
        .collect()
}

fn rank(reference: &Reference) -> u8 {
    match reference {
        Reference::Bare(_) => 0,
        Reference::Agent(_) => 1,
        Reference::Remote { .. } => 2,
    }
}
