//! RFC 0020 A.1: the Unicode properties of ECMA-262 §22.2.2.9, under exactly the names it gives them.
//!
//! The library that has the tables reads names loosely (`\p{gc=LU}`, `\p{IsGreek}`) and knows properties that the
//! standard leaves out, so a name is looked up here first.

use super::class::{Class, none, single};
use super::syntax::ErrorKind;
use regex_syntax::hir::{self, HirKind};

/// Names and aliases of binary properties.
#[rustfmt::skip]
const BINARY: [&str; 98] = [
    "ASCII", "ASCII_Hex_Digit", "AHex", "Alphabetic", "Alpha", "Any", "Assigned", "Bidi_Control", "Bidi_C",
    "Bidi_Mirrored", "Bidi_M", "Case_Ignorable", "CI", "Cased", "Changes_When_Casefolded", "CWCF",
    "Changes_When_Casemapped", "CWCM", "Changes_When_Lowercased", "CWL", "Changes_When_NFKC_Casefolded", "CWKCF",
    "Changes_When_Titlecased", "CWT", "Changes_When_Uppercased", "CWU", "Dash", "Default_Ignorable_Code_Point", "DI",
    "Deprecated", "Dep", "Diacritic", "Dia", "Emoji", "Emoji_Component", "EComp", "Emoji_Modifier", "EMod",
    "Emoji_Modifier_Base", "EBase", "Emoji_Presentation", "EPres", "Extended_Pictographic", "ExtPict", "Extender",
    "Ext", "Grapheme_Base", "Gr_Base", "Grapheme_Extend", "Gr_Ext", "Hex_Digit", "Hex", "IDS_Binary_Operator", "IDSB",
    "IDS_Trinary_Operator", "IDST", "ID_Continue", "IDC", "ID_Start", "IDS", "Ideographic", "Ideo", "Join_Control",
    "Join_C", "Logical_Order_Exception", "LOE", "Lowercase", "Lower", "Math", "Noncharacter_Code_Point", "NChar",
    "Pattern_Syntax", "Pat_Syn", "Pattern_White_Space", "Pat_WS", "Quotation_Mark", "QMark", "Radical",
    "Regional_Indicator", "RI", "Sentence_Terminal", "STerm", "Soft_Dotted", "SD", "Terminal_Punctuation", "Term",
    "Unified_Ideograph", "UIdeo", "Uppercase", "Upper", "Variation_Selector", "VS", "White_Space", "space",
    "XID_Continue", "XIDC", "XID_Start", "XIDS",
];

/// Names and aliases of general categories.
#[rustfmt::skip]
const CATEGORIES: [&str; 80] = [
    "Cased_Letter", "LC", "Close_Punctuation", "Pe", "Connector_Punctuation", "Pc", "Control", "Cc", "cntrl",
    "Currency_Symbol", "Sc", "Dash_Punctuation", "Pd", "Decimal_Number", "Nd", "digit", "Enclosing_Mark", "Me",
    "Final_Punctuation", "Pf", "Format", "Cf", "Initial_Punctuation", "Pi", "Letter", "L", "Letter_Number", "Nl",
    "Line_Separator", "Zl", "Lowercase_Letter", "Ll", "Mark", "M", "Combining_Mark", "Math_Symbol", "Sm",
    "Modifier_Letter", "Lm", "Modifier_Symbol", "Sk", "Nonspacing_Mark", "Mn", "Number", "N", "Open_Punctuation", "Ps",
    "Other", "C", "Other_Letter", "Lo", "Other_Number", "No", "Other_Punctuation", "Po", "Other_Symbol", "So",
    "Paragraph_Separator", "Zp", "Private_Use", "Co", "Punctuation", "P", "punct", "Separator", "Z", "Space_Separator",
    "Zs", "Spacing_Mark", "Mc", "Surrogate", "Cs", "Symbol", "S", "Titlecase_Letter", "Lt", "Unassigned", "Cn",
    "Uppercase_Letter", "Lu",
];

/// Names of scripts that are not one capital letter and small ones; all others are.
#[rustfmt::skip]
const LONG_SCRIPTS: [&str; 51] = [
    "Anatolian_Hieroglyphs", "Bassa_Vah", "Canadian_Aboriginal", "Caucasian_Albanian", "Cypro_Minoan", "Dives_Akuru",
    "Egyptian_Hieroglyphs", "Gunjala_Gondi", "Gurung_Khema", "Hanifi_Rohingya", "Imperial_Aramaic",
    "Inscriptional_Pahlavi", "Inscriptional_Parthian", "Katakana_Or_Hiragana", "Kayah_Li", "Khitan_Small_Script",
    "Kirat_Rai", "Linear_A", "Linear_B", "Masaram_Gondi", "Meetei_Mayek", "Mende_Kikakui", "Meroitic_Cursive",
    "Meroitic_Hieroglyphs", "Nag_Mundari", "New_Tai_Lue", "Nyiakeng_Puachue_Hmong", "Ol_Chiki", "Ol_Onal",
    "Old_Hungarian", "Old_Italic", "Old_North_Arabian", "Old_Permic", "Old_Persian", "Old_Sogdian",
    "Old_South_Arabian", "Old_Turkic", "Old_Uyghur", "Pahawh_Hmong", "Pau_Cin_Hau", "Phags_Pa", "Psalter_Pahlavi",
    "SignWriting", "Sora_Sompeng", "Syloti_Nagri", "Tai_Le", "Tai_Tham", "Tai_Viet", "Tulu_Tigalari", "Warang_Citi",
    "Zanabazar_Square",
];

/// The characters that `\p{body}` takes; or whether there is no such property, or only no table for it.
pub(super) fn read(body: &str) -> Result<Class, ErrorKind> {
    match body.split_once('=') {
        None if BINARY.contains(&body) => table(body).ok_or(ErrorKind::Unsupported),
        None => category(body),
        Some(("General_Category" | "gc", value)) => category(value),
        Some(("Script" | "sc", value)) => script("sc", value),
        Some(("Script_Extensions" | "scx", value)) => script("scx", value),
        Some(_) => Err(ErrorKind::Invalid),
    }
}

fn category(value: &str) -> Result<Class, ErrorKind> {
    match value {
        // No text contains a surrogate.
        "Surrogate" | "Cs" => Ok(none()),
        _ if CATEGORIES.contains(&value) => table(&format!("gc={value}")).ok_or(ErrorKind::Unsupported),
        _ => Err(ErrorKind::Invalid),
    }
}

fn script(property: &str, value: &str) -> Result<Class, ErrorKind> {
    let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
    let run_together = || LONG_SCRIPTS.iter().any(|long| plain(long) == plain(value));
    let mut letters = value.bytes();
    let capitalised = letters.next().is_some_and(|first| first.is_ascii_uppercase())
        && letters.all(|letter| letter.is_ascii_lowercase());
    match table(&format!("{property}={value}")) {
        Some(class) if LONG_SCRIPTS.contains(&value) || (capitalised && !run_together()) => Ok(class),
        // What belongs to no script has a name, and no table here.
        None if matches!(value, "Unknown" | "Zzzz" | "Katakana_Or_Hiragana" | "Hrkt") => Err(ErrorKind::Unsupported),
        _ => Err(ErrorKind::Invalid),
    }
}

fn table(query: &str) -> Option<Class> {
    let hir = regex_syntax::Parser::new().parse(&format!("\\p{{{query}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(hir::Class::Unicode(class)) => Some(class),
        HirKind::Literal(literal) => {
            let text = String::from_utf8(literal.0.into_vec()).ok()?;
            let mut characters = text.chars();
            let first = characters.next()?;
            characters.next().is_none().then(|| single(first))
        }
        _ => None,
    }
}
