//! Entries of lists of categories, from configurations of other tools.

use crate::args::values::CategoryList;
use trace_config::filter;
use trace_config::tree::Wrong;

/// Checks that an entry means the same in our list.
pub fn check(at: usize, name: &str) -> Result<(), Wrong> {
    filter::check_name(at, name)?;
    match name.parse::<CategoryList>() {
        Ok(list) if list.0 == [name] => Ok(()),
        Ok(_) => Err(Wrong::new(at, format!("category {name:?} has blanks or quotes around it"))),
        Err(why) => Err(Wrong::new(at, why.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_config::filter::Rules;

    #[test]
    fn what_a_list_of_ours_cannot_name_is_refused() {
        for (name, message) in [
            ("", "a category has no name"),
            ("a/b", "category \"a/b\" cannot be selected: it contains '/'"),
            ("a?", "category \"a?\" cannot be selected: it contains '?'"),
            ("#a", "category \"#a\" cannot be selected: it begins with '#'"),
            ("-a", "category \"-a\" cannot be selected: it begins with '-'"),
            (" a", "category \" a\" has blanks or quotes around it"),
            ("*a", "category \"*a\" is invalid: no blanks or quotes, and * only at the end"),
        ] {
            let rules = Rules { enabled: vec![(7, name.to_owned())], ..Rules::default() };
            assert_eq!(rules.filter(check), Err(Wrong::new(7, message)));
        }
    }
}
