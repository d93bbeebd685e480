//! Counts with their nouns, for people.

use std::fmt;

/// A number of things, with their name in the plural: `5 events`, `1 event`.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a>(pub u64, pub &'a str);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(1, things) => write!(f, "1 {}", singular(things)),
            Self(count, things) => write!(f, "{count} {things}"),
        }
    }
}

/// Words that begin what qualifies a noun.
const QUALIFIERS: [&str; 12] = [
    " that ",
    " of ",
    " without ",
    " beyond ",
    " before ",
    " for ",
    " with ",
    " within ",
    " whose ",
    " deeper ",
    " out ",
    ", ",
];
/// Verbs that qualify nouns, in the plural and in the singular.
const VERBS: [(&str, &str); 9] = [
    (" that are no numbers", " that is no number"),
    (" that are no events", " that is no event"),
    (" that are ", " that is "),
    (" that refer ", " that refers "),
    (" that have ", " that has "),
    (" that end ", " that ends "),
    (" that overlap ", " that overlaps "),
    (" that stand ", " that stands "),
    (", which do not ", ", which does not "),
];

/// One of several things.
fn singular(things: &str) -> String {
    let end = QUALIFIERS.iter().filter_map(|word| things.find(word)).min().unwrap_or(things.len());
    let end = things.find(" \"").map_or(end, |quote| end.min(quote));
    let (noun, rest) = things.split_at(end);
    // A name is no plural.
    let noun = match noun {
        _ if noun.contains(" and ") || noun.starts_with("metadata ") => noun.to_owned(),
        _ if noun.ends_with("ies") => format!("{}y", &noun[..noun.len() - 3]),
        _ if noun.ends_with("ches") => noun[..noun.len() - 2].to_owned(),
        _ if noun.ends_with('s') && !noun.ends_with("ss") => noun[..noun.len() - 1].to_owned(),
        _ => noun.to_owned(),
    };
    let verb = VERBS.iter().find(|(many, _)| rest.contains(many));
    noun + &verb.map_or_else(|| rest.to_owned(), |(many, one)| rest.replace(many, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_a_name_in_the_singular() {
        let expected = [
            ("events", "event"),
            ("loss records", "loss record"),
            ("program events", "program event"),
            ("log entries that cannot be expressed", "log entry that cannot be expressed"),
            ("fiber switches", "fiber switch"),
            ("further pieces of large blobs", "further piece of large blobs"),
            ("records of unknown type", "record of unknown type"),
            ("ends without a beginning", "end without a beginning"),
            ("spans beyond those that can be open", "span beyond those that can be open"),
            ("packets that refer to lost strings", "packet that refers to lost strings"),
            ("counter arguments that are no numbers", "counter argument that is no number"),
            ("kernel objects that are no process or thread", "kernel object that is no process or thread"),
            ("members \"samples\"", "member \"samples\""),
            ("metadata process_labels", "metadata process_labels"),
            ("slices deeper than 24 rows", "slice deeper than 24 rows"),
            ("arrows out of the picture, not shown", "arrow out of the picture, not shown"),
            ("scheduling that cannot be expressed", "scheduling that cannot be expressed"),
        ];
        for (things, thing) in expected {
            assert_eq!(Counted(1, things).to_string(), format!("1 {thing}"));
            assert_eq!(Counted(2, things).to_string(), format!("2 {things}"));
        }
    }
}
