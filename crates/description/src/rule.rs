//! ADP Table 1, ADP Table 5, ADP Table 2: the rules by which a description is judged, by number.
//!
//! `R` is what the text demands, `D` what follows from several of its members together or from where a description was
//! found, `I` is about interface definition documents and `P` about pages of discovery. What a rule has to say to whoever
//! breaks it is said here once.
//!
//! INVARIANT: a number is never given to another rule.

macro_rules! rules {
    ($($rule:ident $section:literal $advice:literal)*) => {
        /// A rule by its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $advice] $rule,)*
        }

        impl Rule {
            /// All rules, in order.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// Its number.
            pub fn number(self) -> &'static str {
                match self { $(Self::$rule => stringify!($rule),)* }
            }

            /// The part of the text behind it.
            pub fn section(self) -> &'static str {
                match self { $(Self::$rule => $section,)* }
            }

            /// What would be right.
            pub fn advice(self) -> &'static str {
                match self { $(Self::$rule => $advice,)* }
            }
        }
    };
}

rules! {
    R01 "ADP Overview" "write the description as one JSON object"
    R02 "ADP Table 1" "begin with `@context`"
    R03 "ADP Table 1" "make `@context` a URL, or an array of URLs and maps"
    R04 "ADP Namespaces" "list `https://agent-network-protocol.com/ad#` in `@context` as a text of its own"
    R05 "ADP Table 1" "keep only texts and maps in the array of `@context`"
    R06 "ADP Table 1" "put all names of `@context` into one map"
    R07 "ADP Table 1" "give each name in `@context` the URL of its namespace"
    R08 "ADP Table 1" "say the language of the texts in `@language`, such as `en` or `zh-CN`"
    R09 "ADP Table 1" "make `@type` a text or an array of texts"
    R10 "ADP Table 1" "make `@id` a URI, the address of the description at best"
    R11 "ADP Table 1" "make `did` the DID of the agent, as a text"
    R12 "ADP Table 1" "give the agent a `name` that people can read"
    R13 "ADP Table 1" "make `description` a text"
    R14 "ADP Table 1" "make `version` a text or an object"
    R15 "ADP Table 1" "make `created` a date and time, such as `2026-01-31T12:00:00Z`"
    R16 "ADP Table 1" "make `modified` a date and time, such as `2026-01-31T12:00:00Z`"
    R17 "ADP Table 1" "make `owner` an object with `@type` `Person` or `Organization`"
    R18 "ADP Table 1" "make `products` an array of objects"
    R19 "ADP Table 1" "make `services` an array of objects"
    R20 "ADP Table 1" "make `interfaces` an array of objects"
    R21 "ADP Table 1" "name in `security` what access demands, as a text or an array of texts"
    R22 "ADP Table 1" "define every way of access in `securityDefinitions`, an object of objects"
    R23 "ADP Table 1" "name only what `securityDefinitions` defines"
    R24 "ADP Security Mechanism" "activate at least one definition for the whole agent"
    R25 "ADP Table 1" "all names in `security` are demanded together"
    R26 "ADP Table 1" "a definition has no effect until a `security` names it"
    R27 "ADP Table 5" "give the interface one `@type`: `ad:NaturalLanguageInterface` or `ad:APIInterface`"
    R28 "ADP Table 5" "give the interface an `@id`, a URI of its own"
    R29 "ADP Table 5" "give the interface a `name`"
    R30 "ADP Table 5" "say in `description` what the interface does"
    R31 "ADP Table 5" "say the `protocol`: `YAML` or `JSON-RPC 2.0`"
    R32 "ADP Table 5" "give the `url` of the document that defines the interface"
    R33 "ADP Table 5" "make `version` a text"
    R34 "ADP Table 5" "name in `security` what the interface demands, and define it in `securityDefinitions`"
    R35 "ADP Table 2" "say `didwba` in `scheme`"
    R36 "ADP Table 2" "give the did:wba identifier of the agent in `did`"
    R37 "ADP Table 2" "make `@type` a text or an array of texts and `description` a text"
    R38 "ADP Security Mechanism" "define a way of access in `securityDefinitions` and activate it in `security`"
    R39 "ADP Security Mechanism" "a `security` further down replaces that of the agent, so it names all that is demanded there"
    R40 "ADP Namespaces" "write the terms of the text without a prefix"
    R41 "ADP Overview" "other vocabularies are welcome"
    R42 "ADP Overview" "what a description links is followed only by whoever asks for it"
    D1 "derived" "let `did` and the `did` of the active schemes be the same"
    D2 "derived" "list the address of the description in the DID document, as a service of type `AgentDescription`"
    D3 "derived" "let `@id` be the address at which the description is found"
    D4 "derived" "serve the description from the host that its DID names"
    D5 "derived" "give every interface an `@id` of its own"
    D6 "derived" "let `modified` be no earlier than `created`"
    D7 "derived" "link with http or https"
    D8 "derived" "take the secret out and replace it where it is used: whatever is published is known"
    I1 "ADP Interface" "give every operation a name of its own"
    I2 "ADP Interface" "say what the operation does"
    I3 "ADP Interface" "give every parameter a name and a schema"
    I4 "ADP Interface" "describe the result"
    I5 "ADP Interface" "name the address to call first in `servers`, beginning with https"
    I6 "ADP Interface" "let references lead to definitions in the same document, and not in circles"
    I7 "ADP Interface" "write schemas where they are used: known clients lose what is only referred to"
    I8 "ADP Interface" "follow the form of the interface description language"
    P1 "ANP-08" "write the page as an object with an array `items`"
    P2 "ANP-08" "give the page the `@type` `CollectionPage`"
    P3 "ANP-08" "give every item the address of its description in `@id`"
    P4 "ANP-08" "let `next` be the address of another page on the same host"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_complete_and_advice_is_no_sentence() {
        let numbers: Vec<&str> = Rule::ALL.iter().map(|rule| rule.number()).collect();
        let expected = (1..=42).map(|n| format!("R{n:02}")).chain((1..=8).map(|n| format!("D{n}")));
        assert!(expected.eq(numbers.iter().take(50).copied()));
        for rule in Rule::ALL {
            assert!(!rule.advice().ends_with('.') && rule.advice().starts_with(|first: char| !first.is_uppercase()));
        }
    }
}
